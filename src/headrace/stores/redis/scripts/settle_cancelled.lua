#!lua flags=allow-oom
-- Cancel items of a batch being cancelled that have not started, and ask its running ones to stop.
-- Arguments: batch, limit, session and term of the leader, or empty. Returns how many were cancelled, -1 for no batch.
-- Keys: batch, holders, running, cancels, job, ready, lane, scheduled, parked, ended. Complexity: O(H + N log M), H the
-- holders.
-- include cancelling, terms
local batch, limit = ARGV[2], tonumber(ARGV[3])
local row = call('HMGET', batch_key(batch), 'state', 'queue')
if not row[1] then
  return -1
elseif row[1] ~= 'cancelling' or not leads(ARGV[4], ARGV[5]) then
  return 0
end
local live = batch_key(batch, 'live')
local settled = cancel_waiting(live, limit, ask_running(live, row[2]))
flush()
return settled
