#!lua flags=no-writes
-- Return ids of batches, newest first. Arguments: created_at and id before which it begins or
-- two empty ones, how many to pass over, how many. Keys: batches. Complexity: O(log B + N).
-- include keys, paging
local first = place_before(ROOT .. 'batches', ARGV[2], ARGV[3]) + ARGV[4]
return call('ZRANGE', ROOT .. 'batches', first, first + ARGV[5] - 1, 'REV')
