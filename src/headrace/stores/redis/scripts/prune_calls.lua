#!lua flags=allow-oom
-- Look at a slice of the calls that were opened longer ago than their retention, oldest first, and remove those that
-- ended. Arguments: session and term of the leader or empty, retention, place to begin at, slice, limit.
-- Returns {removed, place to go on at, or -1: there is no more}.
-- Keys: calls, calls_of, call, orphans. Complexity: O(N log M).
-- include ledger, terms
if not leads(ARGV[2], ARGV[3]) then
  return {0, -1}
end
local place, slice, limit, removed = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), 0
local ids = call('ZRANGE', ROOT .. 'calls', '-inf', text(NOW - ARGV[4]), 'BYSCORE', 'LIMIT', place, slice)
for _, id in ipairs(ids) do
  if removed >= limit then
    break
  end
  local row = call('HMGET', call_key(id), 'state', 'job')
  if is_live(row[1]) then
    place = place + 1
  else
    unlist_call(id, row[2])
    call('ZREM', ROOT .. 'orphans', id)
    removed = removed + 1
  end
end
return {removed, #ids < slice and removed < limit and -1 or place}
