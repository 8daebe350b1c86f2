#!lua flags=allow-oom
-- Pause or resume claims of a queue. Arguments: queue, 1 or 0, reason. Keys: settings, queue. Complexity: O(1).
-- include keys
call('SADD', ROOT .. 'settings', ARGV[2])
if ARGV[3] == '1' then
  call('HSET', ROOT .. 'queue:' .. ARGV[2], 'paused', ARGV[4])
else
  call('HDEL', ROOT .. 'queue:' .. ARGV[2], 'paused')
end
