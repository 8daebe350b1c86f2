#!lua flags=no-writes
-- Return what is set of queues: {queue, {names and values in turn}, …}. Keys: settings, queue. Complexity: O(Q).
-- include keys
local states = {}
for _, queue in ipairs(call('SMEMBERS', ROOT .. 'settings')) do
  states[#states + 1] = queue
  states[#states + 1] = call('HGETALL', ROOT .. 'queue:' .. queue)
end
return states
