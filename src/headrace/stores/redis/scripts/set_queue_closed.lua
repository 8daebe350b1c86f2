#!lua flags=allow-oom
-- Close or open the intake of a queue. Arguments: queue, 1 or 0. Keys: settings, queue. Complexity: O(1).
-- include keys
call('SADD', ROOT .. 'settings', ARGV[2])
if ARGV[3] == '1' then
  call('HSET', ROOT .. 'queue:' .. ARGV[2], 'closed', 1)
else
  call('HDEL', ROOT .. 'queue:' .. ARGV[2], 'closed')
end
