#!lua flags=allow-oom
-- Whether the server is new enough: scripts with flags came with Redis 7, and so did the newest command we use.
-- Sent by EVAL when a store is opened. KEYS[1]: the root of the namespace. Returns 0. Keys: probe, which is never there.
-- Complexity: O(1).
return redis.call('SINTERCARD', 1, KEYS[1] .. ':probe')
