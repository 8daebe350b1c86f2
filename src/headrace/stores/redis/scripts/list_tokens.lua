#!lua flags=no-writes
-- Return API tokens, the newest first, as in lib/tokens.lua. Arguments: how many at most.
-- Keys: tokens, token. Complexity: O(log M + N).
-- include tokens
local rows = {}
for _, id in ipairs(call('ZRANGE', ROOT .. 'tokens', '+inf', '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, ARGV[2])) do
  rows[#rows + 1] = read_token(id)
end
return rows
