-- Insert jobs that share one specification: scalars once, the rest as arrays. A job with run_at in the future waits
-- as scheduled. Ids that are stored already are left alone (a submit retried after its answer was lost).
-- Runs and nodes may be shorter: the other jobs have none. `args` comes as text: on the caller's own connection a codec
-- for json may be set.
-- Locks: the new rows. Index: primary key.
INSERT INTO {schema}.jobs
  (id, state, sort_at, run_at, created_at, queue, task, priority, max_attempts, timeout, at_most_once, lane,
   cost, args, run_id, node)
SELECT j.id, CASE WHEN j.run_at > t.now THEN 'scheduled' ELSE 'ready' END,
  greatest(j.run_at, t.now) - %(head_start)s::interval, j.run_at, t.now, %(queue)s, %(task)s,
  %(priority)s::smallint, %(max_attempts)s::smallint, %(timeout)s::interval, %(at_most_once)s::boolean,
  %(lane)s::text, %(cost)s::double precision, j.args::json, j.run_id, j.node
FROM unnest(%(ids)s::uuid[], %(args)s::text[], %(run_ats)s::timestamptz[], %(run_ids)s::uuid[], %(nodes)s::text[])
    AS j (id, args, run_at, run_id, node),
  (SELECT coalesce(%(now)s::timestamptz, now()) AS now) AS t
ON CONFLICT (id) DO NOTHING
