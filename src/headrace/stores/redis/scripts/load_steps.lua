#!lua flags=no-writes
-- Return the stored steps of a job, names and values in turn. Arguments: id. Keys: steps. Complexity: O(N).
-- include keys
return call('HGETALL', ROOT .. 'steps:' .. ARGV[2])
