#!lua flags=no-writes
-- Return the running jobs that a session holds in a queue, as rows of a claim in no order; in a gated queue with why they
-- are refused as one more. Arguments: session, queue. Returns {gated 0 or 1, rows}.
-- Keys: running, job, gated, breaker. Complexity: O(N), the jobs of the session.
-- include keeper, claiming
local rows, queue = {}, ARGV[3]
local gated = call('SISMEMBER', ROOT .. 'gated', queue)
for _, id in ipairs(call('SMEMBERS', running_key(queue, ARGV[2]))) do
  local row = call('HMGET', job_key(id), unpack(CLAIMED))
  row[#CLAIMED + 1] = id
  if gated == 1 then
    local gate = gate_of(call('HGET', job_key(id), 'gate'))
    row[#CLAIMED + 2] = refusal_of({id = id, queue = queue, gate = gate, attempt = row[3]}) or false
  end
  rows[#rows + 1] = row
end
return {gated, rows}
