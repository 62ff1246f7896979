-- KEYS: lease. ARGV: token, channel.
local stands = redis.call('GET', KEYS[1])
if not stands or payload(stands) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
-- A hint: an account that may not publish has released all the same.
redis.pcall('PUBLISH', ARGV[2], '')
return 1
