#!lua flags=no-writes
-- Return arguments of items of a batch, a part at a time: first those that live, then those that ended. Of an item that
-- was retried those of its newest try.
-- Arguments: batch, `live` or `ended`, cursor, how many. Returns {next cursor or empty, ordinal, arguments, …}.
-- Keys: batch, job. Complexity: O(log M + N).
-- include keys
local batch, part, cursor, most = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local ids, following
if part == 'live' then
  local page = call('SSCAN', batch_key(batch, 'live'), cursor, 'COUNT', most)
  ids, following = page[2], page[1] ~= '0' and page[1] or ''
else
  local list = call('ZRANGE', batch_key(batch, 'ended'), '(' .. cursor, '+inf', 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
  ids, following = {}, list[#list] or ''
  for index = 1, #list, 2 do
    ids[#ids + 1] = list[index]
  end
end
local found = {following}
for _, id in ipairs(ids) do
  local row = call('HMGET', job_key(id), 'ordinal', 'args', 'retried_by')
  if row[1] and not row[3] then
    found[#found + 1] = row[1]
    found[#found + 1] = row[2]
  end
end
return found
