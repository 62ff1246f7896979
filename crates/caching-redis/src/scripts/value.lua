-- How a value is stored: see value.rs. Shared by the scripts that compare.
local MARK = '\255xhslid\1'
local PLAIN = MARK .. '\0\0\0\0\0\0\0\0'

local function has_header(stored)
  return #stored >= 16 and string.sub(stored, 1, 8) == MARK
end

local function payload(stored)
  if has_header(stored) then return string.sub(stored, 17) end
  return stored
end

-- What is stored for the payload of `stored` without sliding.
local function plain(stored)
  if not has_header(stored) or string.sub(stored, 1, 16) == PLAIN then return stored end
  local value = payload(stored)
  if string.sub(value, 1, 8) == MARK then return PLAIN .. value end
  return value
end

-- Writes over what `stands`. A full server takes what needs no more room than that: it refuses no
-- write of a script that has written something already.
local function write_over(key, stands, value, ttl)
  if #value <= #stands then redis.call('PEXPIRE', key, ttl) end
  redis.call('SET', key, value, 'PX', ttl)
end
