#!lua flags=no-writes
-- Return the API token with a digest as in lib/tokens.lua, or nil. Arguments: digest.
-- Keys: token_digests, token. Complexity: O(1).
-- include tokens
local id = call('HGET', ROOT .. 'token_digests', ARGV[2])
return id and read_token(id)
