#!lua
-- Note that API tokens were used, to the minute; those that are not there are passed over. Arguments: ids.
-- Keys: token. Complexity: O(N).
-- include tokens
local minute = text(NOW - NOW % 60000000)
for index = 2, #ARGV do
  if call('EXISTS', token_key(ARGV[index])) == 1 then
    call('HSET', token_key(ARGV[index]), 'used_at', minute)
  end
end
