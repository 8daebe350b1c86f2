#!lua flags=allow-oom
-- End attempts that ran longer than their timeout plus a grace, for the leader only: ready again at their old place
-- with one more failure; failed when those are used up or the job may run only once; cancelled where asked to stop.
-- Arguments: limit, grace, session and term of the leader. Returns {how many, rows of lib/sweeping.lua}.
-- Keys: leader, deadlines, job, running, attempts, ready, lane, ended, dead, batch, run, unsettled. Complexity: O(N log M).
-- include terms, sweeping
if not leads(ARGV[4], ARGV[5]) then
  return {0, swept}
end
local until_at = '(' .. text(NOW - ARGV[3])
for _, id in ipairs(call('ZRANGE', ROOT .. 'deadlines', '-inf', until_at, 'BYSCORE', 'LIMIT', 0, ARGV[2])) do
  local job = read_job(id)
  if runs(job) then
    local used_up = job.once or (job.failures or 0) + 1 >= tonumber(job.max_attempts or 4)
    local verdict = job.cancel and 'cancelled' or used_up and 'failed' or 'ready'
    sweep_job(id, job, verdict, 'failures', 'failed', OVERDUE)
  else
    later('ZREM', ROOT .. 'deadlines', id)
  end
end
flush()
return {#swept, swept}
