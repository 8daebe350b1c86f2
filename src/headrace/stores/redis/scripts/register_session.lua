#!lua flags=allow-oom
-- Register a session; one that is known, dead or alive, is left as it is. Arguments: id, lease, then names and values.
-- Keys: sessions, session. Complexity: O(log S).
-- include keys
if call('ZADD', ROOT .. 'sessions', 'NX', text(NOW + ARGV[3]), ARGV[2]) == 1 then
  call('HSET', ROOT .. 'session:' .. ARGV[2], 'started_at', NOW_TEXT, unpack(ARGV, 4))
end
