#!lua flags=allow-oom
-- Open a breaker for its cooldown, or close it. Arguments: key, open or closed. Returns 0 for one that nobody declared.
-- Keys: breaker. Complexity: O(1).
-- include breaking
local breaker = read_breaker(ARGV[2])
if not breaker then
  return 0
end
write_record(ARGV[2], ARGV[3] == 'open' and opened(breaker) or {state = 'closed'})
return 1
