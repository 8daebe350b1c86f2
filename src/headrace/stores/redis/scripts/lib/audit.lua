-- The audit: a hash per action, and its id in four indexes by time: `actions`, `actions:OPERATION`, `actions::WHO` and
-- `actions:OPERATION:WHO`, so that each question has one.
-- include keys
local function action_key(id)
  return ROOT .. 'action:' .. id
end

local function action_indexes(who, operation)
  local all = ROOT .. 'actions'
  return {all, all .. ':' .. operation, all .. '::' .. who, all .. ':' .. operation .. ':' .. who}
end
