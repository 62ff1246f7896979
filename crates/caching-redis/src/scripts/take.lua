-- Writes an absent key, or gives what stands there. Needs Redis 7.0.
local function take(key, value, ttl)
  return redis.pcall('SET', key, value, 'NX', 'GET', 'PX', ttl)
end
