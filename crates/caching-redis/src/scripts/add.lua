-- KEYS: entry. ARGV: stored value, time to live.
return take(KEYS[1], ARGV[1], ARGV[2])
