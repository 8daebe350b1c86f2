#!lua flags=allow-oom
-- Revoke an API token, once. Arguments: id. Returns it as in lib/tokens.lua, or nil: there is none.
-- Keys: token. Complexity: O(1).
-- include tokens
if call('EXISTS', token_key(ARGV[2])) == 1 then
  call('HSETNX', token_key(ARGV[2]), 'revoked_at', NOW_TEXT)
end
return read_token(ARGV[2])
