#!lua flags=allow-oom
-- Store parts of streamed answers under the keys of their live calls, each number once; these calls become received.
-- Arguments: id of the call, number and text of each part, in turn. Keys: call, spool. Complexity: O(N log M).
-- include ledger, spooling
for index = 2, #ARGV, 3 do
  local id, number = ARGV[index], ARGV[index + 1]
  local row = read_call(id)
  if row and is_live(row.state) then
    call('HSET', call_key(id), 'state', 'received')
    if call('HSETNX', spool_key(row.key), number, ARGV[index + 2]) == 1 then
      call('ZADD', ROOT .. 'spool', NOW_TEXT, row.key .. ' ' .. number)
    end
  end
end
