#!lua flags=allow-oom
-- Remove closed batches that are old enough and whose jobs are all gone, with their keys. Arguments: session and term of
-- the leader or empty, retention, place to begin at, slice, limit. Returns {removed, place to go on at, or -1}.
-- Keys: batches, batch, key. Complexity: O(N log B).
-- include keys, terms
local place, slice, limit = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
if not leads(ARGV[2], ARGV[3]) then
  return {0, -1}
end
local ids = call('ZRANGE', ROOT .. 'batches:closed', '-inf', text(NOW - ARGV[4]), 'BYSCORE', 'LIMIT', place, slice)
local removed = 0
for _, id in ipairs(ids) do
  if removed >= limit then
    break
  elseif call('EXISTS', batch_key(id, 'ended'), batch_key(id, 'live')) > 0 then
    place = place + 1
  else
    local row = call('HMGET', batch_key(id), 'task', 'key')
    if row[1] and row[2] then
      call('DEL', ROOT .. 'key:batch:' .. row[1] .. ':' .. row[2])
    end
    call('DEL', batch_key(id), batch_key(id, 'slices'), batch_key(id, 'rounds'), batch_key(id, 'retried'),
      batch_key(id, 'held'))
    call('ZREM', ROOT .. 'batches:closed', id)
    call('SREM', ROOT .. 'batches:pausing', id)
    call('ZREM', ROOT .. 'batches', id)
    removed = removed + 1
  end
end
return {removed, #ids < slice and removed < limit and -1 or place}
