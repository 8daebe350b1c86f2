-- Jobs that waited for a time or a signal become ready.
-- include waiting
local WAKING = {'state', 'queue', 'priority', 'gate', 'attempt', 'sort_at', 'parked_on'}

-- Make a scheduled or parked job ready at the place of a time, or at the place it kept. Returns its queue; nil where it is
-- neither.
local function wake(id, at)
  local key, job = job_key(id), {}
  for index, value in ipairs(call('HMGET', key, unpack(WAKING))) do
    job[WAKING[index]] = value
  end
  if job.state ~= 'scheduled' and job.state ~= 'parked' then
    return nil
  end
  local place = keeps_place(job) and job.sort_at or text(at - head_start(job))
  leave_waiting(id, job)
  call('HSET', key, 'state', 'ready', 'sort_at', place)
  if job.parked_on then
    call('HDEL', key, 'parked_on')
  end
  enter_ready(id, job, place)
  return job.queue
end
