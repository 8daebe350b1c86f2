#!lua flags=no-writes
-- Return ids of batches, newest first. Arguments: place to begin at, how many. Keys: batches. Complexity: O(log B + N).
-- include keys
return call('ZRANGE', ROOT .. 'batches', ARGV[2], ARGV[2] + ARGV[3] - 1, 'REV')
