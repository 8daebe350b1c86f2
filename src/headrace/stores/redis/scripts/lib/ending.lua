-- Ends of attempts. `read_job` gives what these functions need; each writes the hash and leaves the rest to `flush`.
-- include holding, running
local JOB = {'state', 'session', 'attempt', 'queue', 'batch', 'timeout', 'gate', 'cancel', 'failures',
  'crashes', 'lone_crashes', 'sort_at', 'priority', 'started_at', 'once', 'max_attempts', 'run', 'parked_on'}
-- What is enough for an attempt that succeeds: most do, and a lookup costs.
local BRIEF = {'state', 'session', 'attempt', 'queue', 'batch', 'timeout', 'gate', 'run'}

local function read_job(id, fields)
  fields = fields or JOB
  local values = call('HMGET', job_key(id), unpack(fields))
  if not values[1] then
    return nil
  end
  local job = {}
  for index = 1, #fields do
    job[fields[index]] = values[index]
  end
  return job
end

-- Make a job final. `facts` are names and values in turn. It must have left the place where it was. One of a run is
-- unsettled from then on, unless it is known what its end sets going.
local function finish(id, job, state, facts, settled)
  call('HSET', job_key(id), 'state', state, 'finished_at', NOW_TEXT, unpack(facts))
  later('ZADD', ROOT .. 'ended:' .. state .. ':' .. job.queue, NOW_TEXT, id)
  if job.run then
    later('SREM', ROOT .. 'run:' .. job.run .. ':jobs', id)
    if not settled then
      later('ZADD', ROOT .. 'unsettled', NOW_TEXT, id)
    end
  elseif state == 'failed' then
    later('ZADD', ROOT .. 'dead:' .. job.queue, NOW_TEXT, id)
  end
  if job.batch then
    later('SREM', batch_key(job.batch, 'live'), id)
    later('ZADD', batch_key(job.batch, 'ended'), call('INCR', ROOT .. 'commits'), id)
    if state ~= 'succeeded' then
      later('SADD', batch_key(job.batch, state), id)
    end
  end
end

-- Keep how an attempt ended that did not end its job; `error` is JSON text or nil.
local function record_attempt(id, job, outcome, error)
  call('RPUSH', ROOT .. 'attempts:' .. id, string.format(
    '{"attempt":%s,"outcome":"%s","session":"%s","started_at":%s,"finished_at":%s,"error":%s}',
    job.attempt, outcome, job.session, job.started_at, NOW_TEXT, error or 'null'))
end

-- Put a job that ran at a place, held there while its batch is paused.
local function put_back(id, job, place)
  if is_held(job.batch) then
    hold(id, job, place)
  else
    call('HSET', job_key(id), 'state', 'ready', 'sort_at', place)
    enter_ready(id, job, place)
  end
end

-- Send a running job back to the place it had.
local function release(id, job)
  leave_running(id, job, keeps_place(job) and is_held(job.batch))
  call('HDEL', job_key(id), 'session', 'started_at')
  put_back(id, job, job.sort_at)
end

-- Send a running job back to wait for its time, or to queue up again; one with an in-order key keeps that and its place.
local function wait(id, job, delay)
  local keeps = keeps_place(job)
  leave_running(id, job, keeps and (delay > 0 or is_held(job.batch)))
  local key, due = job_key(id), text(NOW + delay)
  call('HDEL', key, 'session', 'started_at')
  if delay > 0 then
    call('HSET', key, 'state', 'scheduled', 'run_at', due)
    enter_scheduled(id, job, due)
  else
    put_back(id, job, keeps and job.sort_at or text(NOW - head_start(job)))
  end
end

-- Send a running job to wait without a slot: for a signal (or empty), for a time (or -1), or whichever comes first. A signal
-- that has come makes it queue up at once. One with an in-order key keeps that.
local function park(id, job, signal, length)
  if signal ~= '' and call('EXISTS', signal_key(signal)) == 1 then
    wait(id, job, 0)
    return
  end
  leave_running(id, job, keeps_place(job))
  local key, due = job_key(id), length >= 0 and text(NOW + length)
  call('HDEL', key, 'session', 'started_at', 'run_at')
  call('HSET', key, 'state', 'parked')
  if due then
    call('HSET', key, 'run_at', due)
  end
  if signal ~= '' then
    call('HSET', key, 'parked_on', signal)
  end
  enter_parked(id, job, due or '+inf', signal ~= '' and signal)
end
