#!lua
-- Create a batch with its key and its items, all or nothing: sealed, and closed at once where it has none; or open.
-- Arguments: id, body hash, key or empty, JSON {spec, facts, run_at, sealed}: `spec` names and values that the items
-- share, `facts` those of the batch itself; JSON {ids, args} of the items; id for the callback.
-- Returns {created, known or conflict, id of the batch that is stored}.
-- Keys: batch, batches, key, those of an insert. Complexity: O(N log M), N the items, at most 10,000.
-- include intake, batches, closing
local id, hash, key = ARGV[2], ARGV[3], ARGV[4]
local new, items = cjson.decode(ARGV[5]), cjson.decode(ARGV[6])
local name, stored = nil, call('EXISTS', batch_key(id)) == 1 and id
if key ~= '' then
  name = ROOT .. 'key:batch:' .. new.facts.task .. ':' .. key
  stored = call('GET', name) or stored
end
if stored then
  return {call('HGET', batch_key(stored), 'body_hash') == hash and 'known' or 'conflict', stored}
end
local row = {'body_hash', hash, 'created_at', NOW_TEXT, 'touched_at', NOW_TEXT, 'state', 'open', 'round', 1,
  'appended', 0, 'spec', cjson.encode(new.spec)}
for fact, value in pairs(new.facts) do
  row[#row + 1] = fact
  row[#row + 1] = value
end
call('HSET', batch_key(id), unpack(row))
call('ZADD', ROOT .. 'batches', NOW_TEXT, id)
call('SADD', ROOT .. 'batches:unclosed', id)
if name then
  call('HSET', batch_key(id), 'key', key)
  call('SET', name, id)
end
if new.sealed then
  if #items.ids > 0 then
    insert_items(id, new.spec, new.run_at, 0, items.ids, items.args)
    note_slice(id, 0, #items.ids, hash)
  end
  seal(id, #items.ids)
  if #items.ids == 0 then
    close_batch(id, ARGV[7])
  end
end
flush()
return {'created', id}
