#!lua flags=no-writes
-- Return actions of the audit behind a place, newest first. Arguments: index, the place (time and id, or empty), how many
-- at most. Returns rows {id, time, who, token, address, operation, subject, detail, status, via}.
-- Keys: actions, action. Complexity: O(log M + N + T), T actions of the time of that place.
-- include audit
local key, at, id = ROOT .. ARGV[2], ARGV[3], ARGV[4]
local first, rows = 0, {}
if at ~= '' then
  -- Those of one time stand by their ids, backwards.
  first = call('ZCOUNT', key, '(' .. at, '+inf')
  for _, same in ipairs(call('ZRANGE', key, at, at, 'BYSCORE', 'REV')) do
    if same >= id then
      first = first + 1
    end
  end
end
for _, found in ipairs(call('ZRANGE', key, first, first + ARGV[5] - 1, 'REV')) do
  local row = call('HMGET', action_key(found), 'at', 'who', 'token', 'address', 'operation', 'subject', 'detail', 'status',
    'via')
  rows[#rows + 1] = {found, unpack(row)}
end
return rows
