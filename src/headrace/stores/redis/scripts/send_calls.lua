#!lua flags=allow-oom
-- Record prepared calls as sent. Arguments: ids. Returns those that are live. Keys: call. Complexity: O(N).
-- include ledger
local live = {}
for index = 2, #ARGV do
  local state = call('HGET', call_key(ARGV[index]), 'state')
  if is_live(state) then
    live[#live + 1] = ARGV[index]
    if state == 'prepared' then
      call('HSET', call_key(ARGV[index]), 'state', 'sent')
    end
  end
end
return live
