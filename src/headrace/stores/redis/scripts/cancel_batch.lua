#!lua flags=allow-oom
-- Start cancelling a batch that is not closed; what was appended so far becomes its total; a pause ends. Claims stop at once.
-- Arguments: batch. Returns 0 for no batch, else 1. Keys: batch, batches. Complexity: O(1).
-- include holding
local key = batch_key(ARGV[2])
local row = call('HMGET', key, 'state', 'appended')
if not row[1] then
  return 0
elseif row[1] ~= 'closed' then
  call('HSET', key, 'state', 'cancelling', 'total', row[2])
  call('SADD', ROOT .. 'batches:cancelling', ARGV[2])
  forget_pause(ARGV[2])
end
return 1
