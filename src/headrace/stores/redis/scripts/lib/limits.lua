-- Caps and rates of queues: they make their queue gated, for good.
-- include buckets
local function gate_queue_of(name)
  local queue = string.match(name, '^queue:(.*)$')
  if queue then
    call('SADD', ROOT .. 'gated', queue)
  end
end
