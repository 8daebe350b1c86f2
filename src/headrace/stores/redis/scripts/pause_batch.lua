#!lua flags=allow-oom
-- Pause a batch: what becomes ready from now on is held, what is ready by settle_paused. One that is paused gets the new
-- reason. Arguments: batch, reason or empty. Returns the state of the batch, empty for none; nothing was done where it is
-- closed or cancelling. Keys: batch, batches. Complexity: O(1).
-- include keys
local key = batch_key(ARGV[2])
local state = call('HGET', key, 'state')
if not state then
  return ''
elseif state ~= 'closed' and state ~= 'cancelling' then
  if call('HSETNX', key, 'paused_at', NOW_TEXT) == 1 then
    call('HSET', key, 'hold_cursor', '0')
    call('SADD', ROOT .. 'batches:pausing', ARGV[2])
  end
  call('HSET', key, 'paused_reason', ARGV[3])
end
return state
