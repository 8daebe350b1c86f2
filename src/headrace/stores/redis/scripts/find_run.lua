#!lua flags=no-writes
-- Return the id of the run that was started under a key, or nothing. Arguments: workflow, key. Keys: key.
-- Complexity: O(1).
-- include runs
return call('GET', run_name(ARGV[2], ARGV[3]))
