#!lua flags=allow-oom
-- Keep how nodes of a run ended, under the fence of a running attempt; paths that have an ending keep it. Arguments: run,
-- id, attempt and session of the job, JSON list of {path, text}. Returns 0 when the attempt lost its job.
-- Keys: job, run. Complexity: O(N).
-- include runs
local fence = call('HMGET', job_key(ARGV[3]), 'state', 'attempt', 'session')
if fence[1] ~= 'running' or fence[2] ~= ARGV[4] or fence[3] ~= ARGV[5] then
  return 0
end
if run_state(ARGV[2]) then
  keep_endings(ARGV[2], cjson.decode(ARGV[6]))
end
return 1
