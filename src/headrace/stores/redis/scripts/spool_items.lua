#!lua flags=allow-oom
-- Store parts of a streamed answer under the key of its live call, each number once; the call becomes received.
-- Arguments: id, number of the first, parts. Keys: call, spool. Complexity: O(N log M).
-- include ledger, spooling
local row = read_call(ARGV[2])
if row and is_live(row.state) then
  call('HSET', call_key(ARGV[2]), 'state', 'received')
  for index = 4, #ARGV do
    local number = text(ARGV[3] + index - 4)
    if call('HSETNX', spool_key(row.key), number, ARGV[index]) == 1 then
      call('ZADD', ROOT .. 'spool', NOW_TEXT, row.key .. ' ' .. number)
    end
  end
end
