#!lua flags=allow-oom
-- End leases now; those that have ended keep their time. Arguments: ids. Keys: sessions. Complexity: O(N log S).
-- include keys
for index = 2, #ARGV do
  if alive(ARGV[index]) then
    call('ZADD', ROOT .. 'sessions', NOW_TEXT, ARGV[index])
  end
end
