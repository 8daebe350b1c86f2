#!lua
-- Store what an app asks for at its start: a new schedule fires from now on, one whose rule changed is planned anew; or,
-- renewing, note that those known are still wanted. Arguments: 1 or 0 to renew, then name, rule and definition of each.
-- Keys: schedules, schedule. Complexity: O(N).
-- include firing
for index = 3, #ARGV, 3 do
  local name, rule, definition = ARGV[index], ARGV[index + 1], ARGV[index + 2]
  local key = schedule_key(name)
  local before = call('HGET', key, 'rule')
  if ARGV[2] == '0' then
    call('SADD', ROOT .. 'schedules', name)
    call('HSET', key, 'rule', rule, 'definition', definition, 'declared_at', NOW_TEXT)
    if before ~= rule then
      call('HSET', key, 'after_at', NOW_TEXT)
      call('HDEL', key, 'next_at')
    end
  elseif before then
    call('HSET', key, 'declared_at', NOW_TEXT)
  end
end
