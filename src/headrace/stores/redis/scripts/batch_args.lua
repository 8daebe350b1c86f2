#!lua flags=no-writes
-- Return arguments of items of a batch, a part at a time as lib/members.lua has it. Of an item that was retried those of
-- its newest try.
-- Arguments: batch, part, cursor, how many. Returns {next cursor or empty, ordinal, arguments, …}.
-- Keys: batch, job. Complexity: O(log M + N).
-- include members
local ids, following = members_of(ARGV[2], ARGV[3], ARGV[4], ARGV[5])
local found = {following}
for _, id in ipairs(ids) do
  local row = call('HMGET', job_key(id), 'ordinal', 'args', 'retried_by')
  if row[1] and not row[3] then
    found[#found + 1] = row[1]
    found[#found + 1] = row[2]
  end
end
return found
