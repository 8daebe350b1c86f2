#!lua flags=allow-oom
-- Cancel items of a batch being cancelled that have not started, and ask its running ones to stop.
-- Arguments: batch, limit, session and term of the leader, or empty. Returns how many were cancelled, -1 for no batch.
-- Keys: batch, holders, running, cancels, job, ready, lane, scheduled, ended. Complexity: O(H + N log M), H the holders.
-- include ending, terms
local batch, limit = ARGV[2], tonumber(ARGV[3])
local row = call('HMGET', batch_key(batch), 'state', 'queue')
if not row[1] then
  return -1
elseif row[1] ~= 'cancelling' or not leads(ARGV[4], ARGV[5]) then
  return 0
end
local live, running = batch_key(batch, 'live'), 0
for _, holder in ipairs(call('SMEMBERS', ROOT .. 'holders')) do
  local session, queue = string.match(holder, '^(%x+):(.*)$')
  if queue == row[2] then
    for _, id in ipairs(call('SINTER', running_key(queue, session), live)) do
      running = running + 1
      call('HSET', job_key(id), 'cancel', 1)
      call('SADD', ROOT .. 'cancels:' .. session, id)
    end
  end
end
local settled = 0
for _, id in ipairs(call('SRANDMEMBER', live, limit + running)) do
  local job = settled < limit and read_job(id)
  if job and (job.state == 'ready' or job.state == 'scheduled' or job.state == 'parked') then
    leave_waiting(id, job)
    finish(id, job, 'cancelled', {})
    settled = settled + 1
  end
end
flush()
return settled
