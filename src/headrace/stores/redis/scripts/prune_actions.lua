#!lua flags=allow-oom
-- Remove actions of the audit that were done longer ago, the oldest first. Arguments: session and term of the leader or
-- empty, retention, limit. Returns how many. Keys: actions, action. Complexity: O(N log M).
-- include audit, terms
if not leads(ARGV[2], ARGV[3]) then
  return 0
end
local old = call('ZRANGE', ROOT .. 'actions', '-inf', text(NOW - ARGV[4]), 'BYSCORE', 'LIMIT', 0, ARGV[5])
for _, id in ipairs(old) do
  local row = call('HMGET', action_key(id), 'who', 'operation')
  for _, index in ipairs(action_indexes(row[1], row[2])) do
    call('ZREM', index, id)
  end
  call('DEL', action_key(id))
end
return #old
