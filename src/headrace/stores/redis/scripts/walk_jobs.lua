#!lua flags=no-writes
-- Walk a part of the jobs of a queue, newest first, and return those in a state and of a batch.
-- Arguments: queue, state or empty, batch or empty, place to begin at, how many to look at.
-- Returns {how many were looked at, {created_at, id, …}}. Keys: jobs, job. Complexity: O(log M + N).
-- include keys
local state, batch, first = ARGV[3], ARGV[4], tonumber(ARGV[5])
local pairs_ = call('ZRANGE', ROOT .. 'jobs:' .. ARGV[2], first, first + ARGV[6] - 1, 'REV', 'WITHSCORES')
local found = {}
for index = 1, #pairs_, 2 do
  local row = (state ~= '' or batch ~= '') and call('HMGET', job_key(pairs_[index]), 'state', 'batch') or {}
  if (state == '' or row[1] == state) and (batch == '' or row[2] == batch) then
    found[#found + 1] = pairs_[index + 1]
    found[#found + 1] = pairs_[index]
  end
end
return {#pairs_ / 2, found}
