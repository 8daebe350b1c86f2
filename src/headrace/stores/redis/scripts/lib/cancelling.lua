-- Cancelling the jobs that a set of live ones names: what waits ends, what runs is asked to stop.
-- include ending

-- Ask the running ones to stop, and return how many they are. They are all of one queue, if one is given.
local function ask_running(live, wanted_queue)
  local running = 0
  for _, holder in ipairs(call('SMEMBERS', ROOT .. 'holders')) do
    local session, queue = string.match(holder, '^(%x+):(.*)$')
    if not wanted_queue or queue == wanted_queue then
      for _, id in ipairs(call('SINTER', running_key(queue, session), live)) do
        running = running + 1
        call('HSET', job_key(id), 'cancel', 1)
        call('SADD', ROOT .. 'cancels:' .. session, id)
      end
    end
  end
  return running
end

-- Whether a job waits: for its time, its turn or a signal.
local function waits(job)
  return job and (job.state == 'ready' or job.state == 'scheduled' or job.state == 'parked')
end

-- Cancel up to `limit` that wait, and return how many; `running` others do not. With `settled` nothing follows from it.
local function cancel_waiting(live, limit, running, settled)
  local cancelled = 0
  for _, id in ipairs(call('SRANDMEMBER', live, limit + running)) do
    local job = cancelled < limit and read_job(id)
    if waits(job) then
      leave_waiting(id, job)
      finish(id, job, 'cancelled', {}, settled)
      cancelled = cancelled + 1
    end
  end
  return cancelled
end
