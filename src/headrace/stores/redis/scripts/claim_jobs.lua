#!lua flags=allow-oom
-- Move the first ready jobs of a queue to running under a session that lives, in claim order.
-- Jobs of batches being cancelled are passed over and put aside: they never run. Arguments: session,
-- queue, limit, place to go on behind (sort_at and id, or empty). Returns rows of a claim, or 1: only
-- such jobs were found so far, and there may be more.
-- Keys: sessions, queue, gated, ready, batches:cancelling, job, running, holders, deadlines.
-- Complexity: O(N log M), M the ready jobs of the queue.
-- include claiming
local rows = claim_jobs(ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6])
flush()
return rows
