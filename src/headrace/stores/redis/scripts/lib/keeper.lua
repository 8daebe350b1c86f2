-- The predicate of the gate: what keeps a job from starting. Admission and explain_job ask the same. `job` has id, queue,
-- gate (parsed), cost. An obstacle is {reason, subject, until_at (nil: no time ends it), facts}; where it is units that are
-- missing, also {lack (microseconds), behind, wide}: `behind` says that somebody reserved them, `wide` that then every job of
-- the class lacks them.
-- include running, buckets, breaking
local caps, usages, breakers = {}, {}, {}
local grants, spent, key_caps
local reserved = {}
-- What the grants were too few for, by bucket.
local short = {}

local function cap_of(name)
  if caps[name] == nil then
    caps[name] = tonumber(call('HGET', ROOT .. 'caps:override', name) or call('HGET', ROOT .. 'caps:declared', name) or nil)
      or false
  end
  return caps[name]
end

-- How many jobs use a cap; that of a queue counts what runs in it.
local function usage_of(name)
  if not usages[name] then
    local queue, keyed, key = string.match(name, '^queue:(.*)$'), string.match(name, '^key:([^:]*):(.*)$')
    usages[name] = call('SCARD', keyed and keys_key(keyed, {key = key}) or ROOT .. 'holds:' .. name)
    for _, holder in ipairs(queue and call('SMEMBERS', ROOT .. 'holders') or {}) do
      local session, served = string.match(holder, '^(%x+):(.*)$')
      if served == queue then
        usages[name] = usages[name] + call('SCARD', running_key(queue, session))
      end
    end
  end
  return usages[name]
end

-- How many jobs may run with the concurrency key of a gate; nil: as many as like.
local function key_cap(queue, gate)
  key_caps = key_caps or hash_at(ROOT .. 'caps:override')
  return gate.key and tonumber(key_caps['key:' .. queue .. ':' .. gate.key] or gate.key_limit or nil)
end

local function key_usage(queue, gate)
  local key = keys_key(queue, gate)
  usages[key] = usages[key] or call('SCARD', key)
  return usages[key]
end

-- Names of the caps that a job counts against, sorted.
local function caps_of(job)
  local own, names, seen = 'queue:' .. job.queue, {}, {}
  for _, name in ipairs({own, unpack(job.gate.caps)}) do
    if not seen[name] then
      seen[name] = true
      names[#names + 1] = name
    end
  end
  table.sort(names)
  return names
end

-- A breaker's rule and record; nil for one that nobody declared.
local function breaker_of(key)
  if breakers[key] == nil then
    breakers[key] = read_breaker(key) or false
  end
  return breakers[key] or nil
end

local function probe_runs(probe)
  local id, attempt = string.match(probe, '^(%S+) (%S+)$')
  local row = call('HMGET', job_key(id), 'state', 'attempt')
  return row[1] == 'running' and row[2] == attempt
end

local function passes(breaker)
  if breaker.state == 'closed' then
    return true
  elseif breaker.state == 'open' then
    return not breaker.retry_at or tonumber(breaker.retry_at) <= NOW
  end
  return not breaker.probe or not probe_runs(breaker.probe)
end

local function retry_time(breaker)
  return breaker.state == 'open' and tonumber(breaker.retry_at) or nil
end

-- Breakers that do not let a job pass, by name. An attempt that is the probe itself is no obstacle to itself.
local function shut_breakers(job)
  local shut = {}
  table.sort(job.gate.breakers)
  for _, key in ipairs(job.gate.breakers) do
    local breaker = breaker_of(key)
    if breaker and breaker.probe ~= job.id .. ' ' .. (job.attempt or 0) and not passes(breaker) then
      shut[#shut + 1] = {key = key, breaker = breaker}
    end
  end
  return shut
end

-- Why a job has to be failed without running, "UNTIL KEY" (UNTIL 0: its probe is under way); nil if it has not.
local function refusal_of(job)
  for _, one in ipairs(shut_breakers(job)) do
    if one.breaker.on_open == 'fail' then
      return text(retry_time(one.breaker) or 0) .. ' ' .. one.key
    end
  end
end

-- What a job takes of each bucket there is, by name, and whether that is its own cost; of its queue's one unit.
local function units_of(job)
  local units, own = {}, {}
  local function add(name, amount, costs)
    if bucket_of(name) then
      units[name], own[name] = (units[name] or 0) + amount, own[name] or costs
    end
  end
  add('queue:' .. job.queue, 1, false)
  for name, amount in pairs(job.gate.limits) do
    local costs = amount == cjson.null
    add(name, costs and job.cost or amount, costs)
  end
  local names = {}
  for name in pairs(units) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names, units, own
end

local function level_of(name)
  return grants and (grants[name] or 0) - (spent[name] or 0) or bucket_of(name).level or 0
end

-- Microseconds until a job can take its units of a bucket, of what nobody reserved.
local function lack_of(name, amount)
  local bucket, level = bucket_of(name), level_of(name) - (reserved[name] or 0)
  if not grants then
    return missing(bucket, level, amount)
  end
  -- No more than was granted: whoever grants keeps the debt of a job dearer than the burst.
  local enough = not bucket.rate or amount - level <= amount * 1e-9
  return enough and 0 or math.max(1, math.floor((amount - level) / bucket.rate * 1000000 + 0.5))
end

local function add_short_buckets(job, found)
  local names, units, own = units_of(job)
  for _, name in ipairs(names) do
    local lack, opens = lack_of(name, units[name]), not grants and bucket_of(name).closed_until or 0
    local closed, kept = opens > NOW, reserved[name] or 0
    if closed or lack > 0 then
      found[#found + 1] = {reason = 'rate', subject = name, until_at = not grants and math.max(NOW + lack, opens) or nil,
        opens = closed and opens, lack = not closed and lack, behind = kept > 0,
        wide = not own[name] or level_of(name) <= kept, facts = {level = level_of(name), units = units[name]}}
    end
  end
end

local function add_full_caps(job, found)
  for _, name in ipairs(caps_of(job)) do
    local cap = cap_of(name)
    if cap and usage_of(name) >= cap then
      found[#found + 1] = {reason = 'cap', subject = name, facts = {cap = cap, running = usage_of(name)}}
    end
  end
  local gate = job.gate
  local cap = key_cap(job.queue, gate)
  if cap and key_usage(job.queue, gate) >= cap then
    found[#found + 1] = {reason = 'cap', subject = gate.key, facts = {cap = cap, running = key_usage(job.queue, gate)}}
  end
end

-- Let the buckets of a job stand as they do elsewhere; one that is unknown there is empty, one without a rate no limit.
local function stand_elsewhere(job, levels)
  for _, name in ipairs((units_of(job))) do
    local bucket, level = bucket_of(name), levels[name] or {0, 0}
    bucket.level, bucket.closed_until = math.min(bucket.burst or level[1], level[1]), bucket.rate and NOW + level[2]
  end
end

-- What keeps a job from starting, in the order of their rank. One to be refused needs room under its caps alone.
local function obstacles_of(job, refused)
  local found = {}
  if not refused then
    for _, one in ipairs(shut_breakers(job)) do
      found[#found + 1] = {reason = 'breaker', subject = one.key, until_at = retry_time(one.breaker),
        facts = {state = one.breaker.state}}
    end
    add_short_buckets(job, found)
  end
  add_full_caps(job, found)
  return found
end

-- Keep for a job that can start in `wait` what it then needs; what flows in until then need not be kept.
local function reserve(job, wait)
  local names, units = units_of(job)
  for _, name in ipairs(names) do
    local bucket, amount = bucket_of(name), units[name]
    if bucket.rate then
      local lack, enough = lack_of(name, amount), grants and amount or math.min(amount, bucket.burst)
      local kept = math.max(0, enough - bucket.rate * wait / 1000000)
      if grants and lack > 0 then
        short[name] = amount
      end
      reserved[name] = (reserved[name] or 0) + (lack == wait and amount or kept)
    end
  end
end

-- Let a job wait. One that lacks nothing but units reserves them for the rest of this admission, where nobody did so before
-- it. Returns when to look again (nil: no time is known), and whether all of its class have to wait.
local function hold(job, obstacles)
  local opens, shut, behind, wide, wait = 0, false, false, false, 0
  for _, obstacle in ipairs(obstacles) do
    if obstacle.lack then
      behind, wide = behind or obstacle.behind, wide or obstacle.behind and obstacle.wide
      wait = math.max(wait, obstacle.lack)
    else
      local at = obstacle.opens or obstacle.until_at
      shut, opens = true, opens and at and math.max(opens, at)
    end
  end
  if shut then
    return opens or nil, true
  elseif behind then
    return nil, wide
  end
  reserve(job, wait)
  return not grants and NOW + wait or nil, true
end

-- Take the room and the units of a job that was started as `attempt`, and make it the probe of what it tries.
local function take(job, attempt, refused)
  for _, name in ipairs(caps_of(job)) do
    usages[name] = usage_of(name) + 1
  end
  if job.gate.key then
    local key = keys_key(job.queue, job.gate)
    usages[key] = key_usage(job.queue, job.gate) + 1
  end
  if refused then
    return
  end
  local names, units = units_of(job)
  for _, name in ipairs(names) do
    if grants then
      spent[name] = (spent[name] or 0) + units[name]
    else
      change_level(bucket_of(name), -units[name])
    end
  end
  for _, key in ipairs(job.gate.breakers) do
    local breaker = breaker_of(key)
    if breaker and breaker.state ~= 'closed' then
      breaker.state, breaker.probe = 'half_open', job.id .. ' ' .. attempt
      call('HSET', ROOT .. 'breaker:' .. key, 'state', breaker.state, 'probe', breaker.probe)
    end
  end
end
