#!lua flags=no-writes
-- Return jobs of runs that ended without effects, the oldest first. Arguments: place to begin at, limit.
-- Returns rows {id, run, node, state, error, attempt}. Keys: unsettled, job. Complexity: O(log M + N).
-- include keys
local rows, first = {}, tonumber(ARGV[2])
for _, id in ipairs(call('ZRANGE', ROOT .. 'unsettled', first, first + ARGV[3] - 1)) do
  rows[#rows + 1] = {id, unpack(call('HMGET', job_key(id), 'run', 'node', 'state', 'error', 'attempt'))}
end
return rows
