#!lua flags=allow-oom
-- Cancel a job that has not started, or ask the worker of a running one. Arguments: id. Returns missing, cancelled,
-- requested or already_final. Keys: job, ready, lane, scheduled, ended, cancels, batch. Complexity: O(log M).
-- include ending
local id = ARGV[2]
local job = read_job(id)
if not job then
  return 'missing'
elseif job.state == 'running' then
  call('HSET', job_key(id), 'cancel', 1)
  call('SADD', ROOT .. 'cancels:' .. job.session, id)
  return 'requested'
elseif job.state == 'ready' or job.state == 'scheduled' or job.state == 'parked' then
  leave_waiting(id, job)
  finish(id, job, 'cancelled', {})
  flush()
  return 'cancelled'
end
return 'already_final'
