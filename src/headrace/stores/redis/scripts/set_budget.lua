#!lua flags=allow-oom
-- Set a scope's budget in the place of an earlier one, or remove it. Arguments: scope, 1 to set or 0 to remove, then
-- names and limits in turn. Keys: budgets, budget. Complexity: O(log B).
-- include keys
local scope, key = ARGV[2], ROOT .. 'budget:' .. ARGV[2]
call('DEL', key)
if ARGV[3] == '0' then
  call('ZREM', ROOT .. 'budgets', scope)
else
  call('ZADD', ROOT .. 'budgets', 0, scope)
  if #ARGV > 3 then
    call('HSET', key, unpack(ARGV, 4))
  end
end
