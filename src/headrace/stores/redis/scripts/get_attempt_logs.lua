#!lua flags=no-writes
-- Return what was logged in the attempts of a job: numbers of attempts and JSON texts in turn. Arguments: id. Keys: log.
-- Complexity: O(N).
-- include keys
return call('HGETALL', log_key(ARGV[2]))
