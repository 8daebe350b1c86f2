#!lua
-- Note actions of the audit, once per id. Arguments: of each age, id, who, token or empty, address, operation, subject,
-- detail, status, via. Keys: action, actions. Complexity: O(N log M).
-- include audit
local FIELDS = {'who', 'token', 'address', 'operation', 'subject', 'detail', 'status', 'via'}
for first = 2, #ARGV, 10 do
  local id, at = ARGV[first + 1], text(NOW - ARGV[first])
  if call('EXISTS', action_key(id)) == 0 then
    local row = {'at', at}
    for index, name in ipairs(FIELDS) do
      row[#row + 1] = name
      row[#row + 1] = ARGV[first + 1 + index]
    end
    call('HSET', action_key(id), unpack(row))
    for _, index in ipairs(action_indexes(ARGV[first + 2], ARGV[first + 5])) do
      call('ZADD', index, at, id)
    end
  end
end
