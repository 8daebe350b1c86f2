#!lua flags=allow-oom
-- Open a round of a batch for more items; one that was opened before under this name is left as it is.
-- Arguments: batch, name of the round. Returns {first ordinal}, or {-1, state} for a batch in no state for it (empty:
-- there is none). Keys: batch, batches. Complexity: O(R), R the rounds.
-- include intake, batches
local batch, name = ARGV[2], ARGV[3]
local key, rounds = batch_key(ARGV[2]), batch_key(ARGV[2], 'rounds')
local row = call('HMGET', key, 'state', 'appended')
local known = call('HGET', rounds, name)
if known then
  return {tonumber(string.match(known, ':(%d+)$'))}
elseif not row[1] or takes_items(row[1]) or row[1] == 'cancelling' then
  return {-1, row[1] or ''}
end
begin_round(batch, 'open')
call('HDEL', key, 'total')
call('HSET', key, 'touched_at', NOW_TEXT)
call('HSET', rounds, name, call('HLEN', rounds) + 1 .. ':' .. row[2])
return {tonumber(row[2])}
