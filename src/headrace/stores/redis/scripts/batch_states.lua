#!lua flags=no-writes
-- What items of a batch with ordinals from `first` to before `stop` are, a part at a time: first those that live, then
-- those that ended. One that was retried is `retried`: what it is the other part says, unless it was retried between.
-- Arguments: batch, `live` or `ended`, cursor, how many, first, stop. Returns {end of what was appended, next cursor or
-- empty, ordinal, state, …}, or nothing for no batch. Keys: batch, job. Complexity: O(log M + N).
-- include keys
local batch, part, cursor, most = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local first, stop = tonumber(ARGV[6]), tonumber(ARGV[7])
local row = call('HMGET', batch_key(batch), 'state', 'reach')
if not row[1] then
  return nil
end
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
local found = {tonumber(row[2] or 0), following}
for _, id in ipairs(ids) do
  local job = call('HMGET', job_key(id), 'ordinal', 'state', 'retried_by')
  local ordinal = tonumber(job[1])
  if ordinal and ordinal >= first and ordinal < stop then
    found[#found + 1] = ordinal
    found[#found + 1] = job[3] and 'retried' or job[2]
  end
end
return found
