-- Names of keys, the time, and numbers as text. KEYS[1] is the root of the namespace, ARGV[1] the time of a test in
-- microseconds, or empty for the server's. Numbers of that size become text by `text` alone: `..` would round them.
local call = redis.call
local ROOT = KEYS[1] .. ':'

local function text(number)
  return string.format('%.0f', number)
end

local NOW = tonumber(ARGV[1])
if not NOW then
  local time = call('TIME')
  NOW = time[1] * 1000000 + time[2]
end
local NOW_TEXT = text(NOW)

-- Return the fields of a hash by name.
local function hash_at(key)
  local row, fields = call('HGETALL', key), {}
  for index = 1, #row, 2 do
    fields[row[index]] = row[index + 1]
  end
  return fields
end

local function job_key(id)
  return ROOT .. 'job:' .. id
end

local function log_key(id)
  return ROOT .. 'log:' .. id
end

local function running_key(queue, session)
  return ROOT .. 'running:' .. queue .. ':' .. session
end

local function batch_key(id, part)
  return ROOT .. 'batch:' .. id .. (part and ':' .. part or '')
end

local function alive(session)
  local ends_at = call('ZSCORE', ROOT .. 'sessions', session)
  return ends_at and tonumber(ends_at) > NOW
end
