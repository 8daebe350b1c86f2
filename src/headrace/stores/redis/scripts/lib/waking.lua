-- Jobs that waited for a time or a signal become ready.
-- include holding
local WAKING = {'state', 'queue', 'priority', 'gate', 'attempt', 'sort_at', 'parked_on', 'batch'}

-- Make a scheduled or parked job ready at the place of a time, or at the place it kept, held there while its batch is
-- paused. Returns its queue if it is ready.
local function wake(id, at)
  local key, job = job_key(id), {}
  for index, value in ipairs(call('HMGET', key, unpack(WAKING))) do
    job[WAKING[index]] = value
  end
  if job.state ~= 'scheduled' and job.state ~= 'parked' then
    return nil
  end
  local place = keeps_place(job) and job.sort_at or text(at - head_start(job))
  if is_held(job.batch) then
    hold_waiting(id, job, place)
    return nil
  end
  leave_waiting(id, job)
  call('HSET', key, 'state', 'ready', 'sort_at', place)
  if job.parked_on then
    call('HDEL', key, 'parked_on')
  end
  enter_ready(id, job, place)
  return job.queue
end
