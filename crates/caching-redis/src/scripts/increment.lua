-- KEYS: entry. ARGV: delta, time to live, what is stored where the entry is new.
local stands = redis.call('GET', KEYS[1])
if not stands then
  redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[2])
  return ARGV[1]
end
if not has_header(stands) then
  redis.call('INCRBY', KEYS[1], ARGV[1])
  return redis.call('GET', KEYS[1])
end
-- The server adds, because Lua's numbers are doubles.
redis.call('SET', KEYS[1], payload(stands), 'KEEPTTL')
local sum = redis.pcall('INCRBY', KEYS[1], ARGV[1])
if type(sum) == 'table' then
  redis.call('SET', KEYS[1], stands, 'KEEPTTL')
  return sum
end
local text = redis.call('GET', KEYS[1])
redis.call('SET', KEYS[1], string.sub(stands, 1, 16) .. text, 'KEEPTTL')
return text
