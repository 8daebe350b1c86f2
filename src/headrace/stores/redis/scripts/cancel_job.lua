#!lua flags=allow-oom
-- Cancel a job that has not started, or ask the worker of a running one. Arguments: id. Returns missing, cancelled,
-- requested or already_final. Keys: job, ready, lane, scheduled, parked, sleepers, ended, cancels, batch, run, unsettled.
-- Complexity: O(log M).
-- include cancelling
local id = ARGV[2]
local job = read_job(id)
if not job then
  return 'missing'
elseif job.state == 'running' then
  call('HSET', job_key(id), 'cancel', 1)
  call('SADD', ROOT .. 'cancels:' .. job.session, id)
  return 'requested'
elseif waits(job) then
  leave_waiting(id, job)
  finish(id, job, 'cancelled', {})
  flush()
  return 'cancelled'
end
return 'already_final'
