-- KEYS: entry, fence. ARGV: expected value, time to live, retention of the fence.
local stands = redis.call('GET', KEYS[1])
if not stands or payload(stands) ~= ARGV[1] then return 0 end
local stored = plain(stands)
if stored == stands then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
else
  write_over(KEYS[1], stands, stored, ARGV[2])
end
-- Where the entry is a lease, its number outlives it also when it is renewed for days.
keep(KEYS[2], ARGV[3])
return 1
