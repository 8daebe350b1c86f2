#!lua flags=no-writes
-- Return how nodes of a run ended, as many as fit an answer of some megabytes: of some paths those that have an ending, or
-- of all a part in the order of their ends. Arguments: run, place to begin at, how many at most, paths (none: of all).
-- Returns {how many were looked at, path, "NUMBER FINISHED_AT TEXT", …}. Keys: run. Complexity: O(N + P), P the place.
-- include runs
local MOST = 4000000
local nodes, first, most = run_key(ARGV[2], 'nodes'), tonumber(ARGV[3]), tonumber(ARGV[4])
local paths, answer, size = {unpack(ARGV, 5)}, {0}, 0
if #paths == 0 then
  paths = call('LRANGE', run_key(ARGV[2], 'order'), first, first + most - 1)
end
for seen, path in ipairs(paths) do
  local ending = call('HGET', nodes, path)
  answer[1] = seen
  if ending then
    answer[#answer + 1] = path
    answer[#answer + 1] = ending
    size = size + #ending
  end
  if size > MOST then
    break
  end
end
return answer
