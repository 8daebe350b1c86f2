#!lua flags=allow-oom
-- Look at a page of the batches that are not closed, for the leader only: mark those open and silent abandoned, and
-- return those to settle or to try to close. Arguments: cursor, size of the page, session, term, silence.
-- Returns {next cursor, id, state, …}; an empty cursor under a term that is over. Keys: batches, batch, leader.
-- Complexity: O(N).
-- include terms
if not leads(ARGV[4], ARGV[5]) then
  return {''}
end
local page = call('SSCAN', ROOT .. 'batches:unclosed', ARGV[2], 'COUNT', ARGV[3])
local found = {page[1]}
for _, id in ipairs(page[2]) do
  local row = call('HMGET', batch_key(id), 'state', 'max_failed', 'touched_at')
  if row[1] == 'open' then
    if tonumber(row[3]) <= NOW - ARGV[6] then
      call('HSET', batch_key(id), 'state', 'abandoned')
    end
  elseif row[1] == 'cancelling' or row[1] == 'sealed' and (row[2] or call('SCARD', batch_key(id, 'live')) == 0) then
    found[#found + 1] = id
    found[#found + 1] = row[1]
  end
end
return found
