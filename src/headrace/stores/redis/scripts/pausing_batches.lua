#!lua flags=no-writes
-- Batches whose pause or resume is not through. Arguments: how many at most. Returns ids. Keys: batches.
-- Complexity: O(N).
-- include keys
return call('SRANDMEMBER', ROOT .. 'batches:pausing', ARGV[2])
