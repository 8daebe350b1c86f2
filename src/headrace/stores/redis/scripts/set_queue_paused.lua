#!lua flags=allow-oom
-- Pause or resume claims of a queue. Arguments: queue, setting (`1:REASON` or `0:`). Keys: pauses. Complexity: O(1).
-- include keys
call('HSET', ROOT .. 'pauses', ARGV[2], ARGV[3])
