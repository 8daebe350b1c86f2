#!lua flags=allow-oom
-- Take back running jobs of sessions that are missing or have ended: ready at their old place with one more crash, but
-- for attempts that a farm had begun, which is the step of that name; at-most-once jobs fail, jobs that are asked to
-- stop are cancelled. Arguments: limit. Returns {how many, rows of lib/sweeping.lua}.
-- Keys: holders, sessions, running, job, steps, attempts, ready, lane, ended, dead, batch, run, unsettled.
-- Complexity: O(H + N log M), H holders.
-- include sweeping
local limit, dead = tonumber(ARGV[2]), {}

-- Whether a farm had begun the attempt that runs.
local function farmed(id, job)
  local begun = call('HGET', ROOT .. 'steps:' .. id, BEGUN)
  return begun and tostring(cjson.decode(begun).attempt) == job.attempt
end

for _, holder in ipairs(call('SMEMBERS', ROOT .. 'holders')) do
  local session, queue = string.match(holder, '^(%x+):(.*)$')
  if not alive(session) then
    dead[holder] = session
    local key = running_key(queue, session)
    local room = limit - #swept
    local ids = room > 0 and call('SRANDMEMBER', key, room) or {}
    for _, id in ipairs(ids) do
      local job = read_job(id)
      if runs(job, session) then
        local verdict = job.cancel and 'cancelled' or job.once and 'failed' or 'ready'
        if farmed(id, job) then
          sweep_job(id, job, verdict, nil, 'lost', EXECUTOR_LOST)
        else
          sweep_job(id, job, verdict, 'crashes', 'crashed', WORKER_LOST)
        end
      else
        later('SREM', key, id)
      end
    end
  end
end
flush()
for holder, session in pairs(dead) do
  local queue = string.sub(holder, #session + 2)
  if call('EXISTS', running_key(queue, session)) == 0 then
    call('SREM', ROOT .. 'holders', holder)
    call('DEL', ROOT .. 'cancels:' .. session)
  end
end
return {#swept, swept}
