-- Definitions of workflows: `workflows` has their names, `workflow:NAME` the latest version and whether it is active,
-- `versions:NAME` "CREATED_AT HASH" by version, from 1 on; the graph is in the snapshot of that hash.
-- include runs
local function workflow_key(name)
  return ROOT .. 'workflow:' .. name
end

local function versions_key(name)
  return ROOT .. 'versions:' .. name
end

-- Return version, created_at, hash, and active 0 or 1; nothing where there is no such version. None: the latest.
local function read_version(name, version)
  local row = call('HMGET', workflow_key(name), 'latest', 'active')
  version = version or row[1]
  local known = version and call('HGET', versions_key(name), version)
  if known then
    local created_at, hash = string.match(known, '^(%d+) (.*)$')
    return version, created_at, hash, row[2]
  end
end

-- Return {name, version, hash, graph, active 0 or 1, created_at}; false where there is no such version. None: the latest.
local function read_workflow(name, wanted)
  local version, created_at, hash, active = read_version(name, wanted)
  return version and {name, version, hash, call('HGET', ROOT .. 'snapshot:' .. hash, 'graph'), active, created_at} or false
end
