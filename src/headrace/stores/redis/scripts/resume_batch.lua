#!lua flags=allow-oom
-- End the pause of a batch, if it is paused; settle_paused lets go of what was held. Arguments: batch. Returns 0 for no
-- batch, else 1. Keys: batch, batches. Complexity: O(1).
-- include keys
local key = batch_key(ARGV[2])
if call('HDEL', key, 'paused_at', 'paused_reason', 'hold_cursor') > 0 then
  call('SADD', ROOT .. 'batches:pausing', ARGV[2])
end
return call('EXISTS', key)
