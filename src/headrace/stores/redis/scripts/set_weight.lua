#!lua flags=allow-oom
-- Set the weight of a fair key in a queue; it acts with the next job of it that starts. Arguments: queue, fair key, weight.
-- Keys: weighted, weights. Complexity: O(1).
-- include keys
local weights = ROOT .. 'weights:' .. ARGV[2]
if tonumber(ARGV[4]) ~= 1 then
  call('SADD', ROOT .. 'weighted', ARGV[2])
  call('HSET', weights, ARGV[3], ARGV[4])
else
  call('HDEL', weights, ARGV[3])
  if call('EXISTS', weights) == 0 then
    call('SREM', ROOT .. 'weighted', ARGV[2])
  end
end
