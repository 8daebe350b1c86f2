#!lua flags=no-writes
-- Count the jobs of a queue that are not final. Arguments: queue. Returns {scheduled, ready, running, parked}.
-- Keys: jobs, scheduled, parked, holders, running, ended. Complexity: O(H), H the holders.
-- include keys, figures
local counts = counts_of(ARGV[2], running_by_queue()[ARGV[2]])
return {counts.scheduled, counts.ready, counts.running, counts.parked}
