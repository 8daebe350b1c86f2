-- Insert jobs that share one specification: scalars once, the rest as arrays. A job with run_at in the future waits
-- as scheduled. Ids that are stored already are left alone (a submit retried after its answer was lost).
-- `args` comes as text: on the caller's own connection a codec for json may be set.
-- The first one with a gate makes its queue gated; a queue that is gated already is only looked at, not locked.
-- Locks: the new rows, and the row of a queue that becomes gated. Index: primary keys.
WITH gated AS (
  INSERT INTO {schema}.queues (name, gated)
  SELECT %(queue)s::text, true
  WHERE %(lane)s::text IS NOT NULL
    AND NOT EXISTS (SELECT FROM {schema}.queues AS q WHERE q.name = %(queue)s::text AND q.gated)
  ON CONFLICT (name) DO UPDATE SET gated = true
)
INSERT INTO {schema}.jobs
  (id, state, sort_at, run_at, created_at, queue, task, priority, max_attempts, timeout, at_most_once, lane,
   cost, args)
SELECT j.id, CASE WHEN j.run_at > t.now THEN 'scheduled' ELSE 'ready' END,
  greatest(j.run_at, t.now) - %(head_start)s::interval, j.run_at, t.now, %(queue)s::text, %(task)s,
  %(priority)s::smallint, %(max_attempts)s::smallint, %(timeout)s::interval, %(at_most_once)s::boolean,
  %(lane)s::text, %(cost)s::double precision, j.args::json
FROM unnest(%(ids)s::uuid[], %(args)s::text[], %(run_ats)s::timestamptz[]) AS j (id, args, run_at),
  (SELECT coalesce(%(now)s::timestamptz, now()) AS now) AS t
ON CONFLICT (id) DO NOTHING
