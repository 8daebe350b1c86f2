#!lua flags=no-writes
-- Return scopes as they stand: those that are named, or a part of those with a budget.
-- Arguments: 1, then scopes; or 0, the scope to go on behind or empty, how many. Returns rows {scope, 1 if a budget is
-- set, its limits of money and tokens, spent money, tokens and calls of unknown price, reserved money and tokens}.
-- Keys: budgets, budget, sum, spent, live. Complexity: O(N + L), L the calls in flight of these scopes.
-- include budgets
local scopes, rows = {unpack(ARGV, 3)}, {}
if ARGV[2] == '0' then
  local behind = ARGV[3] == '' and '-' or '(' .. ARGV[3]
  scopes = call('ZRANGE', ROOT .. 'budgets', behind, '+', 'BYLEX', 'LIMIT', 0, ARGV[4])
end
for _, scope in ipairs(scopes) do
  local limits, spent, kept = call('HMGET', ROOT .. 'budget:' .. scope, 'cost', 'tokens'), used_of(scope), reserved_of(scope)
  rows[#rows + 1] = {scope, call('ZSCORE', ROOT .. 'budgets', scope) and 1 or 0, limits[1], limits[2],
    text(spent.cost or 0), text(spent.tokens or 0), text(spent.unpriced or 0), text(kept.cost), text(kept.tokens)}
end
return rows
