-- KEYS: lease, fence. ARGV: token, time to live, retention of the fence.
local stands = take(KEYS[1], ARGV[1], ARGV[2])
if type(stands) == 'table' then
  -- A full server refuses the write before it looks; who has the lease can be told all the same.
  if not string.find(stands.err, 'OOM', 1, true) then return stands end
  local held = redis.call('GET', KEYS[1])
  if not held then return stands end
  stands = held
end
if not stands then return issue(KEYS[2], ARGV[3]) end
if payload(stands) ~= ARGV[1] then return false end
if stands == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
else
  write_over(KEYS[1], stands, ARGV[1], ARGV[2])
end
local number = redis.call('GET', KEYS[2])
if not number then return issue(KEYS[2], ARGV[3]) end
keep(KEYS[2], ARGV[3])
return number
