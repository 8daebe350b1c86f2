#!lua flags=no-writes
-- Return the live sessions of a host as {id, pid, start time, …}. Arguments: host. Keys: sessions, session.
-- Complexity: O(S), the live sessions.
-- include keys
local found = {}
for _, id in ipairs(call('ZRANGE', ROOT .. 'sessions', '(' .. NOW_TEXT, '+inf', 'BYSCORE')) do
  local row = call('HMGET', ROOT .. 'session:' .. id, 'host', 'pid', 'start_time')
  if row[1] == ARGV[2] then
    found[#found + 1] = {id, row[2], row[3]}
  end
end
return found
