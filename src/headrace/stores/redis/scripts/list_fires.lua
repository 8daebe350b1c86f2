#!lua flags=no-writes
-- Return the last fires of a schedule, the newest first. Arguments: name, limit. Keys: fires. Complexity: O(N).
-- include firing
return call('ZRANGE', ROOT .. 'fires:' .. ARGV[2], 0, ARGV[3] - 1, 'REV')
