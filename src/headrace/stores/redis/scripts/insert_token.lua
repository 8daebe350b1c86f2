#!lua
-- Store an API token once per id. Arguments: id, name, digest, how it begins, scopes, lifetime or empty.
-- Returns it as in lib/tokens.lua. Keys: token, token_digests, tokens. Complexity: O(log M).
-- include tokens
local id, lifetime = ARGV[2], tonumber(ARGV[7])
if call('EXISTS', token_key(id)) == 0 then
  call('HSET', token_key(id), 'name', ARGV[3], 'shown', ARGV[5], 'scopes', ARGV[6], 'created_at', NOW_TEXT, 'expires_at',
    lifetime and text(NOW + lifetime) or '')
  call('HSET', ROOT .. 'token_digests', ARGV[4], id)
  call('ZADD', ROOT .. 'tokens', NOW_TEXT, id)
end
return read_token(id)
