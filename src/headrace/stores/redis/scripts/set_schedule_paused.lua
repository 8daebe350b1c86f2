#!lua flags=allow-oom
-- Pause a schedule, or let a paused one fire from now on. Arguments: name, 1 or 0. Returns 0 where there is none.
-- Keys: schedule. Complexity: O(1).
-- include firing
local key = schedule_key(ARGV[2])
if call('EXISTS', key) == 0 then
  return 0
elseif ARGV[3] == '1' then
  call('HSET', key, 'paused', 1)
elseif call('HDEL', key, 'paused') == 1 then
  call('HSET', key, 'after_at', NOW_TEXT)
  call('HDEL', key, 'next_at')
end
return 1
