#!lua flags=no-writes
-- Return the latest versions of the workflows behind a name, by name and without their graphs: {name, version, hash,
-- active 0 or 1, created_at}. Arguments: name or empty, limit. Keys: workflows, workflow, versions. Complexity: O(log M + N).
-- include workflows
local rows, from = {}, ARGV[2] == '' and '-' or '(' .. ARGV[2]
for _, name in ipairs(call('ZRANGEBYLEX', ROOT .. 'workflows', from, '+', 'LIMIT', 0, ARGV[3])) do
  local version, created_at, hash, active = read_version(name)
  rows[#rows + 1] = {name, version, hash, active, created_at}
end
return rows
