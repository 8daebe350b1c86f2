#!lua flags=no-writes
-- Return jobs of a queue in a state from where jobs of that state are kept: those at both ends of it.
-- Arguments: queue, state, how many at each end. Returns {created_at, id, …}; jobs may come twice.
-- Keys: ready, scheduled, parked, holders, running, ended, job. Complexity: O(H + N), H the holders.
-- include keys
local queue, state, most = ARGV[2], ARGV[3], tonumber(ARGV[4])
local found = {}
local function take(ids)
  for _, id in ipairs(ids) do
    local created_at = call('HGET', job_key(id), 'created_at')
    if created_at then
      found[#found + 1] = created_at
      found[#found + 1] = id
    end
  end
end
if state == 'running' then
  for _, holder in ipairs(call('SMEMBERS', ROOT .. 'holders')) do
    local session, where = string.match(holder, '^(%x+):(.*)$')
    if where == queue and #found < 4 * most then
      take(call('SRANDMEMBER', running_key(queue, session), most))
    end
  end
  return found
end
local final = state == 'succeeded' or state == 'failed' or state == 'cancelled'
local key = ROOT .. (final and 'ended:' .. state or state) .. ':' .. queue
take(call('ZRANGE', key, 0, most - 1))
take(call('ZRANGE', key, 0, most - 1, 'REV'))
return found
