#!lua flags=no-writes
-- Find the tries of one item of a batch, a part at a time: first among those that live, then among those that ended.
-- Arguments: batch, `live` or `ended`, cursor, how many, ordinal. Returns {next cursor or empty, id, …}.
-- Keys: batch, job. Complexity: O(log M + N).
-- include keys
local batch, part, cursor, most, ordinal = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local ids, following = {}, ''
if part == 'live' then
  local page = call('SSCAN', batch_key(batch, 'live'), cursor, 'COUNT', most)
  ids, following = page[2], page[1] ~= '0' and page[1] or ''
else
  local list = call('ZRANGE', batch_key(batch, 'ended'), '(' .. cursor, '+inf', 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
  following = list[#list] or ''
  for index = 1, #list, 2 do
    ids[#ids + 1] = list[index]
  end
end
local found = {following}
for _, id in ipairs(ids) do
  if call('HGET', job_key(id), 'ordinal') == ordinal then
    found[#found + 1] = id
  end
end
return found
