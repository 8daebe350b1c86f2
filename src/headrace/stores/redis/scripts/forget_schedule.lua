#!lua flags=allow-oom
-- Remove a schedule and its fires. Arguments: name. Returns 0 where there is none.
-- Keys: schedules, schedule, fires, fired. Complexity: O(F), its fires.
-- include firing
call('DEL', schedule_key(ARGV[2]), ROOT .. 'fires:' .. ARGV[2], ROOT .. 'fired:' .. ARGV[2])
return call('SREM', ROOT .. 'schedules', ARGV[2])
