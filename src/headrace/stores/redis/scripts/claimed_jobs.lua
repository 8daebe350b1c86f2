#!lua flags=no-writes
-- Return the running jobs that a session holds in a queue, as rows of a claim in no order.
-- Arguments: session, queue. Keys: running, job. Complexity: O(N), the jobs of the session.
-- include keys, bulk, running, claiming
local rows = {}
for _, id in ipairs(call('SMEMBERS', running_key(ARGV[3], ARGV[2]))) do
  local row = call('HMGET', job_key(id), unpack(CLAIMED))
  row[12] = id
  rows[#rows + 1] = row
end
return rows
