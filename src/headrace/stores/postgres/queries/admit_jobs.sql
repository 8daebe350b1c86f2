-- Start jobs of a gated queue: see the function in schema.sql. The last row has no job; it says whether the queue is
-- gated, when to look again and what was used of the grants.
-- Locks: the gate of the queue, then the rows in limits, rates and breakers that its lanes name, each by name, then the
-- started jobs, skipping locked ones, then shares. Index: jobs_waiting, jobs_claim, jobs_started, jobs_keeping, the keys.
SELECT * FROM {schema}.admit_jobs(%(session)s::uuid, %(queue)s::text, %(limit)s::int, %(now)s::timestamptz,
  %(grants)s::text::jsonb)
