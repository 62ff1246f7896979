-- Fencing numbers: see keyspace.rs. Numbers stay text, because Lua's are doubles.

-- A number larger than the last one and not below the server's clock in microseconds.
local function issue(fence, retention)
  local time = redis.call('TIME')
  local now = time[1] .. string.format('%06d', time[2])
  local last = redis.call('SET', fence, now, 'GET', 'PX', retention)
  if last and (#last > #now or (#last == #now and last >= now)) then
    redis.call('SET', fence, last, 'PX', retention)
    redis.call('INCR', fence)
    return redis.call('GET', fence)
  end
  return now
end

-- Keeps a number for at least the retention from now.
local function keep(fence, retention)
  if redis.call('PTTL', fence) < tonumber(retention) then
    redis.call('PEXPIRE', fence, retention)
  end
end
