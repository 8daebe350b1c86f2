-- Ending attempts without their worker's word. Rows of the answer: {id, verdict, queue, batch}.
-- include ending
local swept = {}

-- Whether a job runs, under a session if one is given: whatever set named it, an attempt that has ended is left alone.
local function runs(job, session)
  return job and job.state == 'running' and (not session or job.session == session)
end

-- `verdict` is ready, failed or cancelled; `count` is the field that rises by one, if any.
local function sweep_job(id, job, verdict, count, outcome, error)
  if count then
    call('HSET', job_key(id), count, (job[count] or 0) + 1)
  end
  if verdict == 'ready' then
    record_attempt(id, job, outcome, error)
    release(id, job)
  else
    leave_running(id, job)
    finish(id, job, verdict, {'error', error})
  end
  swept[#swept + 1] = {id, verdict, job.queue, job.batch}
end
