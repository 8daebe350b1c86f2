#!lua flags=allow-oom
-- End the closing of a bucket. Arguments: name. Keys: bucket. Complexity: O(1).
-- include keys
call('HDEL', ROOT .. 'bucket:' .. ARGV[2], 'closed_until')
