#!lua flags=no-writes
-- Read jobs, as many of those asked for as fit an answer of some megabytes, in their order.
-- Arguments: 1 for final ones only, then ids. Returns {how many were looked at, {id, {fields and values in turn}, …}}.
-- Keys: job. Complexity: O(N).
-- include keys
local MOST = 4000000
local rows, size, seen = {}, 0, 0
for index = 3, #ARGV do
  local key = job_key(ARGV[index])
  seen = seen + 1
  local state = call('HGET', key, 'state')
  if state and (ARGV[2] ~= '1' or state == 'succeeded' or state == 'failed' or state == 'cancelled') then
    local row = call('HGETALL', key)
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
