#!lua flags=no-writes
-- Return {now, earliest planned time ahead or empty, name, definition and after_at of schedules with work to do, …}: those
-- to be planned first, then those that wait longest. Arguments: limit, how long a declaration counts.
-- Keys: schedules, schedule. Complexity: O(N log N), all schedules: there are few.
-- include firing
local due, ahead = {}, nil
for _, name in ipairs(call('SMEMBERS', ROOT .. 'schedules')) do
  local row = call('HMGET', schedule_key(name), 'paused', 'declared_at', 'next_at', 'after_at', 'definition')
  local next_at = tonumber(row[3] or nil)
  if not row[1] and tonumber(row[2]) > NOW - ARGV[3] then
    if not next_at or next_at <= NOW or tonumber(row[4]) > NOW then
      due[#due + 1] = {name = name, definition = row[5], after_at = row[4], next_at = next_at or -1}
    end
    if next_at and next_at > NOW and (not ahead or next_at < ahead) then
      ahead = next_at
    end
  end
end
table.sort(due, function(one, other)
  return one.next_at < other.next_at or one.next_at == other.next_at and one.name < other.name
end)
local answer = {NOW_TEXT, ahead and text(ahead) or ''}
for index = 1, math.min(tonumber(ARGV[2]), #due) do
  local one = due[index]
  answer[#answer + 1], answer[#answer + 2], answer[#answer + 3] = one.name, one.definition, one.after_at
end
return answer
