-- Jobs entering and leaving a session.
local function start(id, job, session)
  later('SADD', running_key(job.queue, session), id)
  if job.timeout then
    later('ZADD', ROOT .. 'deadlines', text(NOW + job.timeout), id)
  end
  if job.limit_key then
    later('SADD', ROOT .. 'holds:limit:' .. job.limit_key, id)
  end
end

local function leave_running(id, job)
  later('SREM', running_key(job.queue, job.session), id)
  if job.timeout then
    later('ZREM', ROOT .. 'deadlines', id)
  end
  if job.limit_key then
    later('SREM', ROOT .. 'holds:limit:' .. job.limit_key, id)
  end
end
