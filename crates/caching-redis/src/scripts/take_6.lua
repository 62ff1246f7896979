-- Writes an absent key, or gives what stands there. For servers below 7.0.
local function take(key, value, ttl)
  local stands = redis.pcall('GET', key)
  if stands then return stands end
  local written = redis.pcall('SET', key, value, 'PX', ttl)
  return written.err and written or false
end
