-- Whether a session leads in a term that has not ended. An empty session is an operator, who needs no term. A term is a
-- number, and one of another role than the engine is ROLE:NUMBER.
-- include keys
local function leader_key(role)
  return ROOT .. 'leader' .. (role and ':' .. role or '')
end

local function leads(session, term)
  if session == '' then
    return true
  end
  local role, number = string.match(term, '^(%l+):(%d+)$')
  local row = call('HMGET', leader_key(role), 'session', 'term', 'expires_at')
  term = number or term
  return row[1] == session and row[2] == term and tonumber(row[3]) > NOW
end
