#!lua flags=no-writes
-- Return the latest versions of some workflows, by name, as in lib/workflows.lua. Arguments: place to begin at, limit.
-- Keys: workflows, workflow, versions, snapshot. Complexity: O(log M + N).
-- include workflows
local rows, first = {}, tonumber(ARGV[2])
for _, name in ipairs(call('ZRANGE', ROOT .. 'workflows', first, first + ARGV[3] - 1)) do
  rows[#rows + 1] = read_workflow(name)
end
return rows
