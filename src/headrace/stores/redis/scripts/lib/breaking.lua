-- Records of breakers, by the rules of model/breaker.py: fields state, failures, calls, errors, window_at, retry_at, probe
-- beside those of the rule (max_failures, error_rate, min_calls, window, cooldown, on_open).
-- include keys
local RECORD = {'failures', 'calls', 'errors', 'window_at', 'retry_at', 'probe'}

local function read_breaker(key)
  local breaker = hash_at(ROOT .. 'breaker:' .. key)
  return next(breaker) and breaker
end

local function write_record(key, record)
  local name = ROOT .. 'breaker:' .. key
  call('HDEL', name, unpack(RECORD))
  call('HSET', name, 'state', record.state)
  for _, field in ipairs(RECORD) do
    if record[field] then
      call('HSET', name, field, record[field])
    end
  end
end

local function opened(breaker)
  return {state = 'open', retry_at = text(NOW + breaker.cooldown)}
end

local function trips(breaker, record)
  if record.failures >= tonumber(breaker.max_failures) then
    return true
  end
  return breaker.error_rate and record.calls >= tonumber(breaker.min_calls)
    and record.errors / record.calls > tonumber(breaker.error_rate)
end

-- Return the record after one report, or nil where that changes nothing.
local function record_call(breaker, attempt, succeeded)
  if breaker.state ~= 'closed' then
    if breaker.probe ~= attempt then
      return nil
    end
    return succeeded and {state = 'closed'} or opened(breaker)
  end
  local fresh = not breaker.window_at or NOW - breaker.window_at >= tonumber(breaker.window)
  local record = {
    state = 'closed',
    failures = succeeded and 0 or (breaker.failures or 0) + 1,
    calls = (fresh and 0 or breaker.calls or 0) + 1,
    errors = (fresh and 0 or breaker.errors or 0) + (succeeded and 0 or 1),
    window_at = fresh and NOW_TEXT or breaker.window_at,
  }
  return trips(breaker, record) and opened(breaker) or record
end
