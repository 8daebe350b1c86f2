#!lua flags=allow-oom
-- Become or stay the leader in a role: a new term begins with each new leader and after each lapse. Arguments: session,
-- lease, role or nothing for the engine. Returns the term, or nil while another session leads. Keys: leader.
-- Complexity: O(1).
-- include terms
local key = leader_key(ARGV[4])
local row = call('HMGET', key, 'session', 'term', 'expires_at')
local current = row[1] and tonumber(row[3]) > NOW
if current and row[1] ~= ARGV[2] then
  return false
end
local term = (row[2] or 0) + (current and 0 or 1)
call('HSET', key, 'session', ARGV[2], 'term', text(term), 'expires_at', text(NOW + ARGV[3]))
return term
