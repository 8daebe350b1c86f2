#!lua flags=no-writes
-- Walk a part of the jobs of a queue, newest first, and return those in a state, of a task and of a batch.
-- Arguments: queue, state or empty, task or empty, batch or empty, created_at and id before which it begins or two
-- empty ones, how many to pass over, how many to look at.
-- Returns {how many were looked at, {created_at, id, …}}. Keys: jobs, job. Complexity: O(log M + N).
-- include keys, paging
local state, task, batch = ARGV[3], ARGV[4], ARGV[5]
local key = ROOT .. 'jobs:' .. ARGV[2]
local first = place_before(key, ARGV[6], ARGV[7]) + ARGV[8]
local pairs_ = call('ZRANGE', key, first, first + ARGV[9] - 1, 'REV', 'WITHSCORES')
local asks = state ~= '' or task ~= '' or batch ~= ''
local found = {}
for index = 1, #pairs_, 2 do
  local row = asks and call('HMGET', job_key(pairs_[index]), 'state', 'task', 'batch') or {}
  if (state == '' or row[1] == state) and (task == '' or row[2] == task) and (batch == '' or row[3] == batch) then
    found[#found + 1] = pairs_[index + 1]
    found[#found + 1] = pairs_[index]
  end
end
return {#pairs_ / 2, found}
