#!lua flags=no-writes
-- Return the attempts of a job that did not end it, oldest first, as JSON texts. Arguments: id. Keys: attempts.
-- Complexity: O(N).
-- include keys
return call('LRANGE', ROOT .. 'attempts:' .. ARGV[2], 0, -1)
