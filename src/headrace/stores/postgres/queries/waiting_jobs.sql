-- How many jobs of a queue wait, ready or scheduled, counted no further than asked: for bounded queues. The order is
-- that of the indexes: without it a queue that most jobs are of would be looked for in the table.
-- Locks: none. Index: jobs_claim, jobs_waiting, jobs_scheduled; so many entries of each at most.
SELECT count(*) AS waiting FROM (
  (SELECT sort_at FROM {schema}.jobs WHERE queue = %(queue)s::text AND state = 'ready' AND lane IS NULL
  ORDER BY sort_at, id LIMIT %(at_most)s::int)
  UNION ALL
  (SELECT sort_at FROM {schema}.jobs WHERE queue = %(queue)s::text AND state = 'ready' AND lane IS NOT NULL
  ORDER BY lane, sort_at, id LIMIT %(at_most)s::int)
  UNION ALL
  (SELECT NULL FROM {schema}.jobs WHERE queue = %(queue)s::text AND state = 'scheduled'
  ORDER BY queue LIMIT %(at_most)s::int)
  LIMIT %(at_most)s::int) AS w
