#!lua
-- Append a slice of items to an open or abandoned batch, unless it is there already.
-- Arguments: batch, first ordinal, hash, JSON {ids, args}. Returns appended, equal, other (the same ordinals with other
-- contents), overlap, missing, or the state of a batch that takes none.
-- Keys: batch, those of an insert. Complexity: O(N log M), N the items; O(S) for one behind later slices, S the slices.
-- include intake, batches
local batch, first, hash, items = ARGV[2], tonumber(ARGV[3]), ARGV[4], cjson.decode(ARGV[5])
local row = call('HMGET', batch_key(batch), 'state', 'spec', 'run_at', 'reach')
if not row[1] then
  return 'missing'
end
local count = #items.ids
local known = call('HGET', batch_key(batch, 'slices'), first)
if known then
  return known == count .. ':' .. hash and 'equal' or 'other'
elseif not takes_items(row[1]) then
  return row[1]
end
if first < tonumber(row[4] or 0) then
  local slices = call('HGETALL', batch_key(batch, 'slices'))
  for index = 1, #slices, 2 do
    local from, length = tonumber(slices[index]), tonumber(string.match(slices[index + 1], '^%d+'))
    if from < first + count and first < from + length then
      return 'overlap'
    end
  end
end
call('HSET', batch_key(batch), 'state', 'open', 'touched_at', NOW_TEXT)
insert_items(batch, cjson.decode(row[2]), tonumber(row[3] or 0), first, items.ids, items.args)
note_slice(batch, first, count, hash)
flush()
return 'appended'
