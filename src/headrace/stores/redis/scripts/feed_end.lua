#!lua flags=no-writes
-- Return the number of the newest entry of a feed, 0 where there is none. Arguments: feed.
-- Keys: feed. Complexity: O(1).
-- include feeds
return feed_end(ARGV[2])
