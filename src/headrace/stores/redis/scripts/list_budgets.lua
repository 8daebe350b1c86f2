#!lua flags=no-writes
-- Return scopes as they stand: those that are named, or a part of those with a budget.
-- Arguments: 1, then scopes; or 0, the scope to go on behind or empty, how many. Returns rows {scope, 1 if a budget is
-- set, its limits of money and tokens, spent money, tokens and calls of unknown price, reserved money and tokens}.
-- Keys: budgets, budget, used. Complexity: O(log B + N).
-- include sums
local scopes, rows = {unpack(ARGV, 3)}, {}
if ARGV[2] == '0' then
  local behind = ARGV[3] == '' and '-' or '(' .. ARGV[3]
  scopes = call('ZRANGE', ROOT .. 'budgets', behind, '+', 'BYLEX', 'LIMIT', 0, ARGV[4])
end
for _, scope in ipairs(scopes) do
  local limits = call('HMGET', ROOT .. 'budget:' .. scope, 'cost', 'tokens')
  local figures = {'cost', 'tokens', 'unpriced', 'reserved_cost', 'reserved_tokens'}
  rows[#rows + 1] = {scope, call('ZSCORE', ROOT .. 'budgets', scope) and 1 or 0, limits[1], limits[2],
    unpack(call('HMGET', used_key(TODAY, scope), unpack(figures)))}
end
return rows
