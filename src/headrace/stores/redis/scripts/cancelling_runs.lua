#!lua flags=no-writes
-- Return the runs that are being cancelled, the oldest first. Keys: runs. Complexity: O(N).
-- include keys
return call('ZRANGE', ROOT .. 'runs:cancelling', 0, -1)
