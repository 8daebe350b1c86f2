#!lua
-- Store a definition as a new version, unless the latest one is equal. Arguments: name, JSON text, its hash. Returns the
-- latest version as in lib/workflows.lua. Keys: workflows, workflow, versions, snapshot. Complexity: O(1).
-- include workflows
local name, graph, hash = ARGV[2], ARGV[3], ARGV[4]
local latest = read_workflow(name)
if latest and latest[3] == hash then
  return latest
end
local version = latest and latest[2] + 1 or 1
call('ZADD', ROOT .. 'workflows', 0, name)
call('HSET', workflow_key(name), 'latest', version)
call('HSETNX', workflow_key(name), 'active', 1)
call('HSET', versions_key(name), version, NOW_TEXT .. ' ' .. hash)
use_snapshot(hash, graph)
return read_workflow(name)
