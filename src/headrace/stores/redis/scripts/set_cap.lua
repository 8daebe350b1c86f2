#!lua flags=allow-oom
-- Override a cap, or, with an empty one, return to what is declared. Arguments: name, cap. Keys: caps:override, gated.
-- Complexity: O(1).
-- include limits
if ARGV[3] == '' then
  call('HDEL', ROOT .. 'caps:override', ARGV[2])
else
  call('HSET', ROOT .. 'caps:override', ARGV[2], ARGV[3])
  gate_queue_of(ARGV[2])
end
