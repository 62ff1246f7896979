-- KEYS: entry. ARGV: expected value.
local stands = redis.call('GET', KEYS[1])
if not stands or payload(stands) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
