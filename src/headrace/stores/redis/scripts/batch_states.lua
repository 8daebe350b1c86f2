#!lua flags=no-writes
-- What items of a batch with ordinals from `first` to before `stop` are, a part at a time as lib/members.lua has it. One
-- that was retried is `retried`: what it is the other part says, unless it was retried between.
-- Arguments: batch, part, cursor, how many, first, stop. Returns {next cursor or empty, end of what was appended,
-- ordinal, state, …}, or nothing for no batch. Keys: batch, job. Complexity: O(log M + N).
-- include members
local first, stop = tonumber(ARGV[6]), tonumber(ARGV[7])
local row = call('HMGET', batch_key(ARGV[2]), 'state', 'reach')
if not row[1] then
  return nil
end
local ids, following = members_of(ARGV[2], ARGV[3], ARGV[4], ARGV[5])
local found = {following, tonumber(row[2] or 0)}
for _, id in ipairs(ids) do
  local job = call('HMGET', job_key(id), 'ordinal', 'state', 'retried_by')
  local ordinal = tonumber(job[1])
  if ordinal and ordinal >= first and ordinal < stop then
    found[#found + 1] = ordinal
    found[#found + 1] = job[3] and 'retried' or job[2]
  end
end
return found
