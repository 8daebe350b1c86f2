-- Where jobs wait: ready in their queue or lane, or scheduled. `job` has queue, gate and priority, absent
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

-- Take a job from where it waits.
local function leave_waiting(id, job)
  if job.state == 'scheduled' then
    later('ZREM', ROOT .. 'scheduled:' .. job.queue, id)
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
