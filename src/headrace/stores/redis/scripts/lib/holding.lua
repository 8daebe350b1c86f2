-- Jobs of paused batches: what would be ready is held, parked on no signal, in `batch:ID:held` at its place. `batches:pausing`
-- has the batches whose pause or resume is not through; `hold_cursor` is how far the walk over the live items of one is.
-- The release before holds nothing: what it appends, releases or makes ready after the walk met it is never held, so a
-- batch is to be paused once no process of it runs (see docs/howto/upgrade.md).
-- include waiting
local paused_batches = {}
local function is_held(batch)
  if batch and paused_batches[batch] == nil then
    paused_batches[batch] = call('HEXISTS', batch_key(batch), 'paused_at') == 1
  end
  return batch and paused_batches[batch]
end

-- Hold a job at its place that stands nowhere. One with an in-order key keeps that; `leave_running` is told so.
local function hold(id, job, place)
  local key = job_key(id)
  call('HSET', key, 'state', 'parked', 'parked_on', held_by(job.batch), 'sort_at', place)
  call('HDEL', key, 'run_at')
  enter_parked(id, job, '+inf', held_by(job.batch), place)
end

-- Hold a job that waits.
local function hold_waiting(id, job, place)
  if job.state == 'ready' then
    leave_waiting(id, job)
    if keeps_place(job) then
      later('SADD', keys_key(job.queue, gate_of(job.gate)), id)
    end
  elseif job.state == 'scheduled' then
    later('ZREM', ROOT .. 'scheduled:' .. job.queue, id)
  elseif job.parked_on then
    later('SREM', sleepers_key(job.parked_on), id)
  end
  hold(id, job, place)
end

-- Let a job go that was held: ready at its place.
local function let_go(id, job)
  leave_waiting(id, job)
  call('HSET', job_key(id), 'state', 'ready')
  call('HDEL', job_key(id), 'parked_on')
  enter_ready(id, job, job.sort_at)
end

-- Forget the pause of a batch that is being cancelled.
local function forget_pause(batch)
  call('HDEL', batch_key(batch), 'paused_at', 'paused_reason', 'hold_cursor')
  call('SREM', ROOT .. 'batches:pausing', batch)
end
