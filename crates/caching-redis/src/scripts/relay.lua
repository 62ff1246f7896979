-- KEYS: lease, fence. ARGV: token, new token, time to live, retention of the fence.
local stands = redis.call('GET', KEYS[1])
if not stands or payload(stands) ~= ARGV[1] then return false end
local number = issued(KEYS[2])
if type(number) == 'table' then return number end
write_over(KEYS[1], stands, ARGV[2], ARGV[3])
return issue(KEYS[2], ARGV[4])
