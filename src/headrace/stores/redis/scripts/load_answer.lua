#!lua flags=no-writes
-- Return a paid answer, or nil. Arguments: key. Keys: answer. Complexity: O(1).
-- include keys
return call('GET', ROOT .. 'answer:' .. ARGV[2])
