#!lua flags=allow-oom
-- Look at a slice of the sums of a kind of scope whose day is longer over than their retention, and remove those of
-- scopes without a budget. Arguments: session and term of the leader or empty, kind, retention, place to begin at,
-- slice, limit. Returns {removed, place to go on at, or -1: there is no more}.
-- Keys: sums, sum, used, budgets. Complexity: O(N log M).
-- include sums, terms
if not leads(ARGV[2], ARGV[3]) then
  return {0, -1}
end
local key, place, slice = ROOT .. 'sums:' .. ARGV[4], tonumber(ARGV[6]), tonumber(ARGV[7])
local limit, removed = tonumber(ARGV[8]), 0
local members = call('ZRANGE', key, '-inf', '(' .. day_of(NOW - ARGV[5]), 'BYSCORE', 'LIMIT', place, slice)
for _, member in ipairs(members) do
  local day, scope = string.match(member, '^(%d+) (.*)$')
  if removed >= limit then
    break
  elseif call('ZSCORE', ROOT .. 'budgets', scope) then
    place = place + 1
  else
    forget_sum(day, scope)
    call('ZREM', key, member)
    removed = removed + 1
  end
end
write_sums()
return {removed, #members < slice and removed < limit and -1 or place}
