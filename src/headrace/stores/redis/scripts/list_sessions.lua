#!lua flags=no-writes
-- Return a page of sessions, those whose lease ends last first, each with how many jobs run under it.
-- Arguments: place to begin at, how many. Returns rows {id, end of the lease, alive 1 or 0, running, {fields and values}}.
-- Keys: sessions, session, holders, running. Complexity: O(N + H), H the holders.
-- include keys
local running, rows = {}, {}
for _, holder in ipairs(call('SMEMBERS', ROOT .. 'holders')) do
  local session, queue = string.match(holder, '^(%x+):(.*)$')
  running[session] = (running[session] or 0) + call('SCARD', running_key(queue, session))
end
local first = tonumber(ARGV[2])
local list = call('ZRANGE', ROOT .. 'sessions', first, first + ARGV[3] - 1, 'REV', 'WITHSCORES')
for index = 1, #list, 2 do
  local id = list[index]
  rows[#rows + 1] = {id, list[index + 1], tonumber(list[index + 1]) > NOW and 1 or 0, running[id] or 0,
    call('HGETALL', ROOT .. 'session:' .. id)}
end
return rows
