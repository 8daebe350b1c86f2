#!lua flags=allow-oom
-- Set the weight of a fair key in a queue; it acts with the next job of it that starts. Arguments: queue, fair key, weight.
-- Keys: weighted, weights. Complexity: O(1).
-- include keys
call('SADD', ROOT .. 'weighted', ARGV[2])
call('HSET', ROOT .. 'weights:' .. ARGV[2], ARGV[3], ARGV[4])
