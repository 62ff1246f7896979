-- KEYS: lease, fence. ARGV: token, time to live, retention of the fence.
local stands = take(KEYS[1], ARGV[1], ARGV[2])
if type(stands) == 'table' then
  -- A full server refuses the write before it looks; who has the lease can be told all the same.
  if not string.find(stands.err, 'OOM', 1, true) then return stands end
  local held = redis.call('GET', KEYS[1])
  if not held then return stands end
  stands = held
end
if not stands then
  local number = issue(KEYS[2], ARGV[3])
  -- Nobody is told of this lease, so it must not stand.
  if type(number) == 'table' then redis.call('DEL', KEYS[1]) end
  return number
end
if payload(stands) ~= ARGV[1] then return false end
local number = issued(KEYS[2])
if type(number) == 'table' then return number end
if stands == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
else
  write_over(KEYS[1], stands, ARGV[1], ARGV[2])
end
if not number then return issue(KEYS[2], ARGV[3]) end
keep(KEYS[2], ARGV[3])
return number
