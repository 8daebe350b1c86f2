#!lua flags=allow-oom
-- Go on with a run that is being cancelled: cancel its jobs that wait, ask those that run to stop; one without live jobs
-- ends. Arguments: id, limit. Returns {how many were cancelled, 1 if it ended by it}.
-- Keys: run, runs, holders, running, cancels, job, ready, lane, scheduled, parked, sleepers, ended.
-- Complexity: O(H + N log M), H the holders.
-- include cancelling, runs
local id, limit = ARGV[2], tonumber(ARGV[3])
local live = run_key(id, 'jobs')
if run_state(id) ~= 'cancelling' then
  return {0, 0}
end
local cancelled = cancel_waiting(live, limit, ask_running(live), true)
flush()
if call('EXISTS', live) == 1 then
  return {cancelled, 0}
end
end_run(id, 'cancelled', {})
return {cancelled, 1}
