#!lua flags=allow-oom
-- Count endings of attempts behind breakers; keys that nobody declared are ignored. Arguments: key, "ID ATTEMPT" and
-- 1 or 0 for each. Keys: breaker. Complexity: O(N).
-- include breaking
for index = 2, #ARGV, 3 do
  local breaker = read_breaker(ARGV[index])
  local record = breaker and record_call(breaker, ARGV[index + 1], ARGV[index + 2] == '1')
  if record then
    write_record(ARGV[index], record)
  end
end
