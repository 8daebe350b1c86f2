#!lua flags=no-writes
-- Figures of queues. Arguments: length of the time that rates are counted over, then queues.
-- Returns rows {queue, scheduled, ready, running, parked, succeeded, failed, cancelled, came, went, since when one is
-- ready or empty}. Keys: jobs, ready, ghosts, lane, heads, scheduled, parked, holders, running, ended, job.
-- Complexity: O(Q (log M + K) + H), K the lanes of a queue, H the holders.
-- include keys, figures
local LOOKED_AT, LANES = 200, 1000
local since = '(' .. text(NOW - ARGV[2])
local running, rows = running_by_queue(), {}

-- The earliest time at which one of the first jobs of a key became ready: an urgent job stands before older ones.
local function ready_since(key, best)
  local list = call('ZRANGE', key, 0, LOOKED_AT - 1, 'WITHSCORES')
  for index = 1, #list, 2 do
    local sort_at = tonumber(list[index + 1])
    if best and sort_at >= best then
      return best
    end
    local priority = tonumber(call('HGET', job_key(list[index]), 'priority') or 5)
    local at = sort_at + HEAD_STARTS[priority + 1]
    best = best and math.min(best, at) or at
  end
  return best
end

for index = 3, #ARGV do
  local queue = ARGV[index]
  local counts, oldest = counts_of(queue, running[queue]), ready_since(ROOT .. 'ready:' .. queue)
  oldest = ready_since(ROOT .. 'ghosts:' .. queue, oldest)
  for _, gate in ipairs(call('HRANDFIELD', ROOT .. 'heads:' .. queue, LANES)) do
    oldest = ready_since(ROOT .. 'lane:' .. queue .. ':' .. gate, oldest)
  end
  local went = 0
  for _, state in ipairs(FINAL) do
    went = went + call('ZCOUNT', ROOT .. 'ended:' .. state .. ':' .. queue, since, '+inf')
  end
  rows[#rows + 1] = {queue, counts.scheduled, counts.ready, counts.running, counts.parked, counts.succeeded,
    counts.failed, counts.cancelled, call('ZCOUNT', ROOT .. 'jobs:' .. queue, since, '+inf'), went, oldest and text(oldest) or ''}
end
return rows
