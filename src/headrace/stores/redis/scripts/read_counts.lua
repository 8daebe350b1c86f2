#!lua flags=no-writes
-- Return states and how many paths of a run are in each, in turn, or nothing. Arguments: run. Keys: run.
-- Complexity: O(1).
-- include board
return call('EXISTS', status_key(ARGV[2])) == 1 and call('HGETALL', status_key(ARGV[2], 'counts'))
