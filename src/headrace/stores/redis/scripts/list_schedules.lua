#!lua flags=no-writes
-- Return every schedule by name: {name, definition, paused, declared_at, after_at, next_at, last fire}, then now.
-- Keys: schedules, schedule, fires. Complexity: O(N log N), all schedules.
-- include firing
local rows, names = {}, call('SMEMBERS', ROOT .. 'schedules')
table.sort(names)
for _, name in ipairs(names) do
  local row = call('HMGET', schedule_key(name), 'definition', 'paused', 'declared_at', 'after_at', 'next_at')
  local last = call('ZRANGE', ROOT .. 'fires:' .. name, -1, -1)[1]
  rows[#rows + 1] = {name, row[1], row[2], row[3], row[4], row[5], last or false}
end
return {NOW_TEXT, rows}
