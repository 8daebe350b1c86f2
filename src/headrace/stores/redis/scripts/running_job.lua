#!lua flags=no-writes
-- Return the job that runs under a fence: its queue, and the row of a claim; nil when the attempt owns it no more.
-- Arguments: id, attempt, session. Keys: job. Complexity: O(1).
-- include keeper, claiming
local fence = call('HMGET', job_key(ARGV[2]), 'state', 'attempt', 'session', 'queue')
if fence[1] ~= 'running' or fence[2] ~= ARGV[3] or fence[3] ~= ARGV[4] then
  return false
end
local row = call('HMGET', job_key(ARGV[2]), unpack(CLAIMED))
row[#CLAIMED + 1] = ARGV[2]
return {fence[4], row}
