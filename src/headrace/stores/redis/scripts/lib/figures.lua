-- Counting jobs of a queue: sizes of sets, and the rest is what is ready. No figure is kept on the side.
local FINAL = {'succeeded', 'failed', 'cancelled'}

-- The size of what runs, by queue.
local function running_by_queue()
  local counts = {}
  for _, holder in ipairs(call('SMEMBERS', ROOT .. 'holders')) do
    local session, queue = string.match(holder, '^(%x+):(.*)$')
    counts[queue] = (counts[queue] or 0) + call('SCARD', running_key(queue, session))
  end
  return counts
end

local function counts_of(queue, running)
  local counts = {scheduled = call('ZCARD', ROOT .. 'scheduled:' .. queue), running = running or 0,
    parked = call('ZCARD', ROOT .. 'parked:' .. queue)}
  local ready = call('ZCARD', ROOT .. 'jobs:' .. queue) - counts.scheduled - counts.running - counts.parked
  for _, state in ipairs(FINAL) do
    counts[state] = call('ZCARD', ROOT .. 'ended:' .. state .. ':' .. queue)
    ready = ready - counts[state]
  end
  counts.ready = ready
  return counts
end
