#!lua
-- Keep a status that was read from the store. Arguments: run, state, JSON list of paths and states in turn, JSON list of
-- paths and keys of signals in turn. Returns 0. Keys: run, wait. Complexity: O(N).
-- include board
local id, state = ARGV[2], ARGV[3]
set_state(id, state)
local nodes, waits = cjson.decode(ARGV[4]), cjson.decode(ARGV[5])
for index = 1, #nodes, 2 do
  set_node(id, nodes[index], nodes[index + 1])
end
for index = 1, #waits, 2 do
  set_wait(id, waits[index], waits[index + 1])
end
keep_for(id, OVER[state] and LONG or BRIEFLY)
return 0
