-- Whether a session leads in a term that has not ended. An empty session is an operator, who needs no term.
-- include keys
local function leads(session, term)
  if session == '' then
    return true
  end
  local row = call('HMGET', ROOT .. 'leader', 'session', 'term', 'expires_at')
  return row[1] == session and row[2] == term and tonumber(row[3]) > NOW
end
