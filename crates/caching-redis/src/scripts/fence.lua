-- Fencing numbers: see keyspace.rs. Numbers stay text, because Lua's are doubles.

-- Whether a larger number can follow it.
local function is_number(text)
  local largest = '9223372036854775807'
  local is_smaller = #text < #largest or (#text == #largest and text < largest)
  return is_smaller and string.find(text, '^[1-9]%d*$') ~= nil
end

local function wrong_kind()
  return redis.error_reply('WRONGTYPE the key of the fencing number holds another kind of value')
end

-- A number larger than the last one and not below the server's clock in microseconds; an error
-- where something else stands there, which stays.
local function issue(fence, retention)
  local time = redis.call('TIME')
  local now = time[1] .. string.format('%06d', time[2])
  local last = redis.pcall('SET', fence, now, 'GET', 'PX', retention)
  if not last then return now end
  if type(last) == 'table' then return last end
  if is_number(last) and (#last < #now or (#last == #now and last < now)) then return now end
  redis.call('SET', fence, last, 'PX', retention)
  if not is_number(last) then return wrong_kind() end
  redis.call('INCR', fence)
  return redis.call('GET', fence)
end

-- The last number, false where there is none; an error where something else stands there.
local function issued(fence)
  local last = redis.pcall('GET', fence)
  if last and type(last) ~= 'table' and not is_number(last) then return wrong_kind() end
  return last
end

-- Keeps a number for at least the retention from now.
local function keep(fence, retention)
  if redis.call('PTTL', fence) < tonumber(retention) then
    redis.call('PEXPIRE', fence, retention)
  end
end
