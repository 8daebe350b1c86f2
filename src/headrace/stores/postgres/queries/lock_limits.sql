-- First half of a capped claim: let claimers of the same keys pass one by one. What runs is counted afterwards, in a
-- statement (and so a snapshot) of its own: locking and counting in one statement ran over a cap of 1.
-- Only keys with jobs waiting in the queue are locked, so that capped tasks cost other queues next to nothing.
-- Locks: the rows of those keys, in key order. Index: primary key; jobs_claim_capped to look for waiting jobs.
SELECT l.key FROM {schema}.limits AS l
WHERE l.key = ANY(%(keys)s::text[])
  AND EXISTS (SELECT FROM {schema}.jobs AS r
    WHERE r.limit_key = l.key AND r.state = 'ready' AND r.queue = %(queue)s)
ORDER BY l.key FOR UPDATE OF l
