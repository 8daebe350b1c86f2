#!lua flags=allow-oom
-- Let nothing pass for some time, or longer where it is closed for longer. Arguments: name, microseconds.
-- Keys: buckets, bucket. Complexity: O(1).
-- include buckets
local key = ROOT .. 'bucket:' .. ARGV[2]
note_bucket(ARGV[2])
call('HSETNX', key, 'at', NOW_TEXT)
local until_at = math.max(NOW + ARGV[3], tonumber(call('HGET', key, 'closed_until') or 0))
call('HSET', key, 'closed_until', text(until_at))
keep(bucket_of(ARGV[2]))
