#!lua flags=no-writes
-- Count the items of a batch by what became of them. Arguments: batch. Returns {total or -1, succeeded, failed,
-- cancelled, running, waiting}, or nothing for no batch. Keys: batch, holders, running. Complexity: O(H + R), H the
-- holders, R what they run.
-- include keys
local batch = ARGV[2]
local row = call('HMGET', batch_key(batch), 'total', 'queue', 'state')
if not row[3] then
  return nil
end
local running = 0
for _, holder in ipairs(call('SMEMBERS', ROOT .. 'holders')) do
  local session, queue = string.match(holder, '^(%x+):(.*)$')
  if queue == row[2] then
    running = running + call('SINTERCARD', 2, running_key(queue, session), batch_key(batch, 'live'))
  end
end
local failed, cancelled = call('SCARD', batch_key(batch, 'failed')), call('SCARD', batch_key(batch, 'cancelled'))
local succeeded = call('ZCARD', batch_key(batch, 'ended')) - failed - cancelled - call('SCARD', batch_key(batch, 'retried'))
return {tonumber(row[1] or -1), succeeded, failed, cancelled, running, call('SCARD', batch_key(batch, 'live')) - running}
