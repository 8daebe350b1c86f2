#!lua flags=allow-oom
-- Set when backlogs are an alarm. Arguments: queue, size and age in turn, empty for never.
-- Keys: settings, queue. Complexity: O(N).
-- include keys
for index = 2, #ARGV, 3 do
  call('SADD', ROOT .. 'settings', ARGV[index])
  for offset, name in ipairs({'alarm_size', 'alarm_age'}) do
    local value = ARGV[index + offset]
    if value == '' then
      call('HDEL', ROOT .. 'queue:' .. ARGV[index], name)
    else
      call('HSET', ROOT .. 'queue:' .. ARGV[index], name, value)
    end
  end
end
