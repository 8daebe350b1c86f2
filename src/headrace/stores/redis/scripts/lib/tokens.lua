-- API tokens: a hash each, `token_digests` finds them by digest, `tokens` has them by age.
-- include keys
local function token_key(id)
  return ROOT .. 'token:' .. id
end

-- Return {id, name, shown, scopes, state, created_at, expires_at, revoked_at, used_at}, times empty where there is none; or
-- nil.
local function read_token(id)
  local token = hash_at(token_key(id))
  if not token.name then
    return nil
  end
  local state = 'live'
  if token.revoked_at then
    state = 'revoked'
  elseif token.expires_at ~= '' and tonumber(token.expires_at) <= NOW then
    state = 'expired'
  end
  return {id, token.name, token.shown, token.scopes, state, token.created_at, token.expires_at, token.revoked_at or '',
    token.used_at or ''}
end
