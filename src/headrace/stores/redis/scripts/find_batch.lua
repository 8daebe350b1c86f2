#!lua flags=no-writes
-- Return the id of the batch that was submitted under a key, or nothing. Arguments: task, key. Keys: key.
-- Complexity: O(1).
-- include keys
return call('GET', ROOT .. 'key:batch:' .. ARGV[2] .. ':' .. ARGV[3])
