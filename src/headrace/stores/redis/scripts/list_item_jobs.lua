#!lua flags=no-writes
-- Find the tries of one item of a batch, a part at a time as lib/members.lua has it.
-- Arguments: batch, part, cursor, how many, ordinal. Returns {next cursor or empty, id, …}.
-- Keys: batch, job. Complexity: O(log M + N).
-- include members
local ids, following = members_of(ARGV[2], ARGV[3], ARGV[4], ARGV[5])
local found = {following}
for _, id in ipairs(ids) do
  if call('HGET', job_key(id), 'ordinal') == ARGV[6] then
    found[#found + 1] = id
  end
end
return found
