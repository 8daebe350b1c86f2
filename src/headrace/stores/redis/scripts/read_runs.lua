#!lua flags=no-writes
-- Read runs, as many of those asked for as fit an answer of some megabytes, in their order.
-- Arguments: 1 for final ones only, then ids. Returns {how many were looked at, {id, {names and values in turn}, …}}.
-- Keys: run. Complexity: O(N).
-- include runs
local MOST = 4000000
local rows, size, seen = {}, 0, 0
for index = 3, #ARGV do
  local state = run_state(ARGV[index])
  seen = seen + 1
  if state and (ARGV[2] ~= '1' or state ~= 'running' and state ~= 'cancelling') then
    local row = call('HGETALL', run_key(ARGV[index]))
    for place = 2, #row, 2 do
      size = size + #row[place]
    end
    rows[#rows + 1] = {ARGV[index], row}
    if size > MOST then
      break
    end
  end
end
return {seen, rows}
