#!lua flags=no-writes
-- Walk a part of the ledger, newest first, and return calls in a state and of a pool.
-- Arguments: where to look (calls, calls_of:JOB, orphans, live, live:POOL), state or empty, pool or empty, place to begin
-- at, how many to look at. Returns {how many were looked at, rows {id, {fields and values}}}.
-- Keys: calls, calls_of, orphans or live, call. Complexity: O(log M + N).
-- include ledger
local state, pool, first = ARGV[3], ARGV[4], tonumber(ARGV[5])
local ids, rows = call('ZRANGE', ROOT .. ARGV[2], first, first + ARGV[6] - 1, 'REV'), {}
for _, id in ipairs(ids) do
  local row = call('HMGET', call_key(id), 'state', 'pool')
  if (state == '' or row[1] == state) and (pool == '' or row[2] == pool) then
    rows[#rows + 1] = {id, call('HGETALL', call_key(id))}
  end
end
return {#ids, rows}
