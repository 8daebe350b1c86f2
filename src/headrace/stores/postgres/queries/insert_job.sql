-- Insert one job: what insert_jobs does to many, for three quarters of its cost to a job that comes alone.
-- Locks: the new row. Index: primary key.
INSERT INTO {schema}.jobs
  (id, state, sort_at, run_at, created_at, queue, task, priority, max_attempts, timeout, at_most_once, limit_key, args)
SELECT %(id)s::uuid, CASE WHEN %(run_at)s::timestamptz > t.now THEN 'scheduled' ELSE 'ready' END,
  greatest(%(run_at)s::timestamptz, t.now) - %(head_start)s::interval, %(run_at)s::timestamptz, t.now, %(queue)s::text,
  %(task)s::text, %(priority)s::smallint, %(max_attempts)s::smallint, %(timeout)s::interval, %(at_most_once)s::boolean,
  %(limit_key)s::text, %(args)s::text::json
FROM (SELECT coalesce(%(now)s::timestamptz, now()) AS now) AS t
ON CONFLICT (id) DO NOTHING
