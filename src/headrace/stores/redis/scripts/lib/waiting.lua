-- Where jobs wait: ready in their queue or lane, scheduled, or parked. `job` has queue, gate and priority, absent
-- ones false or nil. Nothing here writes the hash of a job.
-- include bulk, gates, shares
local function ready_key(job)
  if job.gate and job.gate ~= OPEN_GATE then
    return ROOT .. 'lane:' .. job.queue .. ':' .. job.gate
  end
  return ROOT .. 'ready:' .. job.queue
end

local function head_start(job)
  return HEAD_STARTS[tonumber(job.priority or 5) + 1]
end

-- Put a job among the ready ones at its place.
local function enter_ready(id, job, sort_at)
  later('ZADD', ready_key(job), sort_at, id)
  if job.gate then
    touch_lane(job.queue, job.gate)
  end
end

local function enter_scheduled(id, job, run_at)
  later('ZADD', ROOT .. 'scheduled:' .. job.queue, run_at, id)
end

local function signal_key(key)
  return ROOT .. 'signal:' .. key
end

-- The jobs that are parked on a signal.
local function sleepers_key(key)
  return ROOT .. 'sleepers:' .. key
end

-- What jobs are parked on that their paused batch holds: no signal has such a key.
local function held_by(batch)
  return '\31' .. batch
end

-- Put a job among those parked, up to a time (`+inf`: none), for a signal if one is given; held by its batch at a place.
local function enter_parked(id, job, run_at, key, held_at)
  later('ZADD', ROOT .. 'parked:' .. job.queue, run_at, id)
  if held_at then
    later('ZADD', batch_key(job.batch, 'held'), held_at, id)
  elseif key then
    later('SADD', sleepers_key(key), id)
  end
end

-- Take a job from where it waits.
local function leave_waiting(id, job)
  if job.state == 'scheduled' or job.state == 'parked' then
    later('ZREM', ROOT .. job.state .. ':' .. job.queue, id)
    if job.batch and job.parked_on == held_by(job.batch) then
      later('ZREM', batch_key(job.batch, 'held'), id)
    elseif job.parked_on then
      later('SREM', sleepers_key(job.parked_on), id)
    end
    if job.gate and gate_of(job.gate).in_order then
      later('SREM', keys_key(job.queue, gate_of(job.gate)), id)
    end
    return
  end
  later('ZREM', ready_key(job), id)
  if job.batch then
    later('ZREM', ROOT .. 'ghosts:' .. job.queue, id)
  end
  if job.gate then
    touch_lane(job.queue, job.gate)
  end
end
