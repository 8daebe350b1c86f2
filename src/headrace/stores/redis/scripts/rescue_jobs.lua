#!lua flags=allow-oom
-- Take back running jobs of sessions that are missing or have ended: ready at their old place with one more crash;
-- at-most-once jobs fail, jobs that are asked to stop are cancelled. Arguments: limit. Returns {how many, rows of
-- lib/sweeping.lua}.
-- Keys: holders, sessions, running, job, attempts, ready, lane, ended, dead, batch, run, unsettled.
-- Complexity: O(H + N log M), H holders.
-- include sweeping
local limit, dead = tonumber(ARGV[2]), {}
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
        sweep_job(id, job, verdict, 'crashes', 'crashed', WORKER_LOST)
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
