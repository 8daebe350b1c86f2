#!lua flags=allow-oom
-- Store a step once per job and name, under the fence of a running attempt. Arguments: id, attempt, session, name,
-- value. Returns the value that is stored, or nil when the attempt lost its job.
-- What an executor keeps is of one attempt: the next one, which names itself in the value, takes its place.
-- Keys: job, steps. Complexity: O(1).
-- include keys
local fence = call('HMGET', job_key(ARGV[2]), 'state', 'attempt', 'session')
if fence[1] ~= 'running' or fence[2] ~= ARGV[3] or fence[3] ~= ARGV[4] then
  return false
end
local key = ROOT .. 'steps:' .. ARGV[2]
if string.sub(ARGV[5], 1, 9) == 'headrace:' then
  local before = call('HGET', key, ARGV[5])
  if before and tostring(cjson.decode(before).attempt) ~= ARGV[3] then
    call('HDEL', key, ARGV[5])
  end
end
call('HSETNX', key, ARGV[5], ARGV[6])
return call('HGET', key, ARGV[5])
