#!lua flags=no-writes
-- Walk a part of the sums of a kind of scope, newest day first, and of the calls in flight.
-- Arguments: kind, first day (number since 1970), places to begin at and how many to look at, of sums and of calls.
-- Returns {rows {day, scope, {fields and values}}, how many calls were looked at, {day or scope, calls in flight, …}}.
-- Keys: sums, sum, live, call. Complexity: O(log M + N).
-- include ledger
local kind, first_day, place, seen = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[6])
local rows, counts, flat = {}, {}, {}
for _, member in ipairs(call('ZRANGE', ROOT .. 'sums:' .. kind, '+inf', first_day, 'BYSCORE', 'REV', 'LIMIT', place, ARGV[5])) do
  local day, scope = string.match(member, '^(%d+) (.*)$')
  rows[#rows + 1] = {day, scope, call('HGETALL', sum_key(day, scope))}
end
local live = call('ZRANGE', ROOT .. 'live', seen, seen + ARGV[7] - 1, 'REV')
for _, id in ipairs(live) do
  local row = call('HMGET', call_key(id), 'scopes', 'opened_at')
  local day = day_of(row[2])
  if tonumber(day) >= tonumber(first_day) then
    for scope in scopes_of({scopes = row[1]}) do
      if kind_of(scope) == kind then
        local name = kind == 'day' and day or scope
        counts[name] = (counts[name] or 0) + 1
      end
    end
  end
end
for name, count in pairs(counts) do
  flat[#flat + 1] = name
  flat[#flat + 1] = count
end
return {rows, #live, flat}
