#!lua flags=no-writes
-- Return entries of a feed behind a number, in order. Arguments: feed, number, how many at most.
-- Returns rows {NUMBER-0, fields}. Keys: feed. Complexity: O(log M + N).
-- include feeds
return call('XRANGE', feed_key(ARGV[2]), '(' .. ARGV[3] .. '-0', '+', 'COUNT', ARGV[4])
