-- Token buckets. Fields of `bucket:NAME`: per_second and burst (declared), set_per_second and set_burst (an operator's),
-- level as it stood at `at` (none: it never had a rate, and is full with its first one), closed_until.
-- include keys
local buckets = {}
-- No time is told as longer, whatever its unit: Redis and Python refuse what they cannot count.
local LONGEST = 1e15
-- What may be thrown away (there is no epoch) goes by itself when it is not used for a day, or for longer than it takes
-- to fill or to open again.
local DAY = 86400000
local function keep(bucket)
  if not KEYS[2] then
    local fill = bucket.rate and (bucket.burst - bucket.level) / bucket.rate * 1000 or 0
    local opens = bucket.closed_until and (bucket.closed_until - NOW) / 1000 or 0
    call('PEXPIRE', ROOT .. 'bucket:' .. bucket.name, text(math.min(math.max(DAY, fill, opens), LONGEST)))
  end
end

-- Make the name of a bucket known, where there is somebody who lists them.
local function note_bucket(name)
  if KEYS[2] then
    call('SADD', ROOT .. 'buckets', name)
  end
end

local function exactly(number)
  return string.format('%.17g', number)
end

-- Return a bucket, settled to now; nil where there is none.
local function bucket_of(name)
  local bucket = buckets[name]
  if bucket ~= nil then
    return bucket or nil
  end
  local row = call('HMGET', ROOT .. 'bucket:' .. name, 'at', 'level', 'per_second', 'burst', 'set_per_second', 'set_burst',
    'closed_until')
  if not row[1] then
    buckets[name] = false
    return nil
  end
  bucket = {name = name, at = tonumber(row[1]), level = tonumber(row[2] or nil), closed_until = tonumber(row[7] or nil)}
  bucket.rate, bucket.burst = tonumber(row[5] or row[3] or nil), tonumber(row[6] or row[4] or nil)
  if bucket.rate then
    local elapsed = math.max(0, NOW - bucket.at) / 1000000
    bucket.level = bucket.level and math.min(bucket.burst, bucket.level + elapsed * bucket.rate) or bucket.burst
    -- It was used before the clock was set back: it fills again from now.
    bucket.changed = bucket.at > NOW
  end
  bucket.at = NOW
  buckets[name] = bucket
  return bucket
end

-- Microseconds for which it must be left alone before `units` may pass at this level; zero: now.
local function missing(bucket, level, units)
  if not bucket.rate then
    return 0
  end
  local need = math.min(units, bucket.burst)
  return math.floor(math.min(math.max(0, need - level) / bucket.rate * 1000000, LONGEST) + 0.5)
end

local function wait_for(bucket, units)
  return math.max(missing(bucket, bucket.level or 0, units), bucket.closed_until and bucket.closed_until - NOW or 0, 0)
end

-- Add units, at most up to the burst; negative ones take, into debt if need be.
local function change_level(bucket, units)
  if bucket.rate then
    bucket.level = math.min(bucket.burst, bucket.level + units)
    bucket.changed = true
  end
end

local function write_buckets()
  for name, bucket in pairs(buckets) do
    if bucket and bucket.changed then
      call('HSET', ROOT .. 'bucket:' .. name, 'level', exactly(bucket.level), 'at', text(bucket.at))
      keep(bucket)
    end
  end
end

-- Set the declared rate (fields per_second, burst) or an operator's (set_per_second, set_burst; nil removes it), and keep
-- the level, at most the new burst. One that had no rate before is full, or `empty`.
local function set_rate(name, prefix, per_second, burst, empty)
  local key = ROOT .. 'bucket:' .. name
  note_bucket(name)
  local before = bucket_of(name)
  call('HSET', key, 'at', text(NOW))
  if per_second then
    call('HSET', key, prefix .. 'per_second', per_second, prefix .. 'burst', burst)
  else
    call('HDEL', key, prefix .. 'per_second', prefix .. 'burst')
  end
  local level = before and before.level
  buckets[name] = nil
  local after = bucket_of(name)
  if not level and empty then
    level = 0
  end
  if level then
    level = after.burst and math.min(after.burst, level) or level
    call('HSET', key, 'level', exactly(level))
    after.level = level
  end
  keep(after)
end
