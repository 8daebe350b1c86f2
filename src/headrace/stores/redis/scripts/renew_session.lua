#!lua flags=allow-oom
-- Renew a lease that has not ended. Arguments: id, lease, statistics as JSON. Returns {0}, or {1, ids of its running
-- jobs that are asked to stop}.
-- Keys: sessions, session, cancels, job. Complexity: O(log S + C), C the cancels.
-- include keys
local session = ARGV[2]
if not alive(session) then
  return {0}
end
call('ZADD', ROOT .. 'sessions', text(NOW + ARGV[3]), session)
call('HSET', ROOT .. 'session:' .. session, 'stats', ARGV[4])
local answer = {1}
for _, id in ipairs(call('SMEMBERS', ROOT .. 'cancels:' .. session)) do
  local now = call('HMGET', job_key(id), 'state', 'session')
  if now[1] == 'running' and now[2] == session then
    answer[#answer + 1] = id
  else
    call('SREM', ROOT .. 'cancels:' .. session, id)
  end
end
return answer
