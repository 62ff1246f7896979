-- KEYS: entry. ARGV: header of the value that was read, its period.
-- Another value with another period may stand there by now.
if redis.call('GETRANGE', KEYS[1], 0, 15) == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
