#!lua
-- Copy failed items of a batch. The first part opens a round of a closed one, the others go on with it; until the last
-- the batch has `retrying`, the time up to which it waits for the next one and is not closed.
-- Arguments: batch, items before this part, microseconds to wait (0: this is the last part), then ids of items and of
-- their copies in turn. Returns {copied}, or {-1, state} for a batch in no state for it (empty: there is none).
-- Keys: batch, batches, those of an insert, dead. Complexity: O(N log M), N the items.
-- include retrying
local batch, key, copied = ARGV[2], batch_key(ARGV[2]), 0
local row = call('HMGET', key, 'state', 'retrying')
local fits = row[1] == 'closed'
if ARGV[3] ~= '0' then
  fits = row[1] == 'sealed' and row[2]
end
if not fits then
  return {-1, row[1] or ''}
end
for index = 5, #ARGV, 2 do
  local id = ARGV[index]
  if call('SISMEMBER', batch_key(batch, 'failed'), id) == 1 then
    retry_job(id, read_ended(id), ARGV[index + 1])
    copied = copied + 1
  end
end
if ARGV[4] == '0' then
  call('HDEL', key, 'retrying')
else
  call('HSET', key, 'retrying', text(NOW + ARGV[4]))
end
flush()
return {copied}
