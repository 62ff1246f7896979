-- KEYS: entry. ARGV: expected value, new stored value, time to live.
local stands = redis.call('GET', KEYS[1])
if not stands or payload(stands) ~= ARGV[1] then return 0 end
write_over(KEYS[1], stands, ARGV[2], ARGV[3])
return 1
