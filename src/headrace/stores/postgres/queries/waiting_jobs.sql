-- How many jobs of a queue wait, ready or scheduled, counted no further than asked: for bounded queues.
-- Locks: none. Index: jobs_claim, jobs_waiting, jobs_scheduled; so many entries of each at most.
SELECT count(*) AS waiting FROM (
  (SELECT FROM {schema}.jobs WHERE queue = %(queue)s::text AND state = 'ready' AND lane IS NULL
  LIMIT %(at_most)s::int)
  UNION ALL
  (SELECT FROM {schema}.jobs WHERE queue = %(queue)s::text AND state = 'ready' AND lane IS NOT NULL
  LIMIT %(at_most)s::int)
  UNION ALL
  (SELECT FROM {schema}.jobs WHERE queue = %(queue)s::text AND state = 'scheduled' LIMIT %(at_most)s::int)
  LIMIT %(at_most)s::int) AS w
