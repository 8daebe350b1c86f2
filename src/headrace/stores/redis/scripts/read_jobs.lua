#!lua flags=no-writes
-- Read jobs, as many of those asked for as fit an answer of some megabytes, in their order.
-- Arguments: "final" for final ones only, "brief" for all without arguments, result and usage, or empty; then ids.
-- Returns {how many were looked at, {id, {fields and values in turn}, …}}.
-- Keys: job. Complexity: O(N).
-- include keys
local MOST = 4000000
-- What a list shows of a job: none of it is large.
local BRIEF = {'task', 'queue', 'state', 'priority', 'attempt', 'failures', 'crashes', 'max_attempts', 'created_at',
  'run_at', 'started_at', 'finished_at', 'session', 'error', 'batch', 'ordinal', 'retry_of', 'cancel', 'run', 'node'}

local function brief_row(key)
  local row = {}
  for index, value in ipairs(call('HMGET', key, unpack(BRIEF))) do
    if value then
      row[#row + 1] = BRIEF[index]
      row[#row + 1] = value
    end
  end
  return row
end

local rows, size, seen = {}, 0, 0
for index = 3, #ARGV do
  local key = job_key(ARGV[index])
  seen = seen + 1
  local state = call('HGET', key, 'state')
  if state and (ARGV[2] ~= 'final' or state == 'succeeded' or state == 'failed' or state == 'cancelled') then
    local row = ARGV[2] == 'brief' and brief_row(key) or call('HGETALL', key)
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
