#!lua
-- Change statuses that are kept. Arguments: JSON list of {run, state or empty, paths and states in turn, paths and keys of
-- signals in turn}. Returns 0. Keys: run, wait. Complexity: O(N).
-- include board
for _, change in ipairs(cjson.decode(ARGV[2])) do
  local id = change[1]
  if call('EXISTS', status_key(id)) == 1 then
    for index = 1, #change[3], 2 do
      set_node(id, change[3][index], change[3][index + 1])
    end
    for index = 1, #change[4], 2 do
      set_wait(id, change[4][index], change[4][index + 1])
    end
    if change[2] ~= '' then
      set_state(id, change[2])
    end
    local left = call('PTTL', status_key(id))
    keep_for(id, OVER[change[2]] and LONG or left)
  end
end
return 0
