#!lua flags=allow-oom
-- Look at a slice of a queue's final jobs of a state that are older than their retention, oldest first, and remove
-- those that may go, with their attempts and steps. Arguments: session and term of the leader or empty, queue, state,
-- retention, place to begin at, slice, limit. Returns {removed, place to go on at, or -1: there is no more}.
-- Keys: ended, job, attempts, log, steps, jobs, dead, batch, queues, unsettled. Complexity: O(N log M).
-- include keys, bulk, terms, removing
local queue, state, place = ARGV[4], ARGV[5], tonumber(ARGV[7])
local slice, limit = tonumber(ARGV[8]), tonumber(ARGV[9])
if not leads(ARGV[2], ARGV[3]) then
  return {0, -1}
end
local key = ROOT .. 'ended:' .. state .. ':' .. queue
local ids = call('ZRANGE', key, '-inf', text(NOW - ARGV[6]), 'BYSCORE', 'LIMIT', place, slice)
local removed = 0
for _, id in ipairs(ids) do
  local row = call('HMGET', job_key(id), 'batch', 'retry_of', 'run')
  if removed >= limit then
    break
  elseif removable(id, row) then
    remove_job(id, queue, state, row)
    removed = removed + 1
  else
    place = place + 1
  end
end
flush()
if removed > 0 and call('EXISTS', ROOT .. 'jobs:' .. queue) == 0 then
  call('SREM', ROOT .. 'queues', queue)
end
return {removed, #ids < slice and removed < limit and -1 or place}
