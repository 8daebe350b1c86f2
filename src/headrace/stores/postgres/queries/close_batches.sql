-- Close the batches that are sealed (or being cancelled) and have no live job, and insert their callbacks; those whose
-- policy is exceeded while jobs are live start cancelling. Returns both; those being cancelled have no outcome. A callback
-- with a second argument (`more`) has a third, of the round that ended: `model.batch.closing_facts`.
-- A closer that waited for the row of another writer checks `changes`: its count of live jobs would be stale.
-- OFFSET 0 keeps the planner from reading a whole table once for all such questions, or a key in order for a merge join.
-- Locks: the batch rows in the order given (the caller sorts by id), the new callback rows. Index: primary key, jobs_batch, finished_jobs_unsuccessful, finished_jobs_items.
WITH asked AS MATERIALIZED (
  SELECT b.id, b.changes, a.callback_id, EXISTS (SELECT FROM {schema}.jobs AS j WHERE j.batch_id = b.id OFFSET 0) AS live,
    b.max_failed IS NOT NULL AND b.max_failed < (SELECT count(*) FROM {schema}.finished_jobs AS f
      WHERE f.batch_id = b.id AND f.state = 'failed'
        AND NOT EXISTS (SELECT FROM {schema}.jobs AS r WHERE r.retry_of = f.id OFFSET 0)
        AND NOT EXISTS (SELECT FROM {schema}.finished_jobs AS r WHERE r.retry_of = f.id OFFSET 0)) AS exceeded
  FROM unnest(%(ids)s::uuid[], %(callback_ids)s::uuid[]) AS a (id, callback_id)
    JOIN {schema}.batches AS b ON b.id = a.id
  WHERE b.state IN ('sealed', 'cancelling')
), stopped AS (
  UPDATE {schema}.batches AS b
  SET state = 'cancelling', paused_at = NULL, paused_reason = NULL
  FROM asked AS a
  WHERE b.id = a.id AND a.live AND a.exceeded AND b.state = 'sealed' AND b.changes = a.changes
  RETURNING b.id
), closed AS (
  UPDATE {schema}.batches AS b
  SET state = 'closed', closed_at = coalesce(%(now)s::timestamptz, now()), outcome = CASE
    WHEN a.exceeded THEN 'failed'
    WHEN b.state = 'cancelling' THEN 'cancelled'
    WHEN NOT EXISTS (SELECT FROM {schema}.finished_jobs AS f
      WHERE f.batch_id = b.id AND f.state <> 'succeeded'
        AND NOT EXISTS (SELECT FROM {schema}.finished_jobs AS r WHERE r.retry_of = f.id OFFSET 0) OFFSET 0) THEN 'succeeded'
    WHEN EXISTS (SELECT FROM {schema}.finished_jobs AS f WHERE f.batch_id = b.id AND f.state = 'succeeded' OFFSET 0)
      THEN 'partial'
    ELSE 'failed' END
  FROM asked AS a
  WHERE b.id = a.id AND NOT a.live AND b.state IN ('sealed', 'cancelling') AND b.changes = a.changes
  RETURNING b.id, b.outcome, b.closed_at, b.on_close, b.round, b.total, a.callback_id
), called AS (
  INSERT INTO {schema}.jobs (id, state, sort_at, created_at, queue, task, priority, max_attempts, timeout,
    at_most_once, lane, cost, args)
  SELECT c.callback_id, 'ready', c.closed_at - (%(head_starts)s::interval[])[s.priority + 1], c.closed_at, s.queue,
    s.task, s.priority, s.max_attempts, s.timeout, s.at_most_once,
    s.lane, s.cost, ('{"args":["' || c.id || '"' || coalesce(',' || (c.on_close ->> 'more') || ',' || json_build_object(
      'round', c.round, 'outcome', c.outcome, 'total', c.total, 'succeeded', c.total - lost.failed - lost.cancelled,
      'failed', lost.failed, 'cancelled', lost.cancelled,
      'closed_at', (extract(epoch FROM c.closed_at) * 1000000)::bigint), '') || '],"kwargs":{}}')::json
  FROM closed AS c CROSS JOIN json_to_record(c.on_close) AS s (queue text, task text, priority smallint,
    max_attempts smallint, timeout interval, at_most_once boolean,
    lane text, cost double precision)
  CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE f.state = 'failed') AS failed,
      count(*) FILTER (WHERE f.state = 'cancelled') AS cancelled
    FROM {schema}.finished_jobs AS f
    WHERE f.batch_id = c.id AND f.state <> 'succeeded' AND c.on_close ->> 'more' IS NOT NULL
      AND NOT EXISTS (SELECT FROM {schema}.jobs AS r WHERE r.retry_of = f.id OFFSET 0)
      AND NOT EXISTS (SELECT FROM {schema}.finished_jobs AS r WHERE r.retry_of = f.id OFFSET 0)) AS lost
  WHERE c.on_close IS NOT NULL
)
SELECT id, outcome, on_close ->> 'queue' AS callback_queue FROM closed
UNION ALL
SELECT id, NULL, NULL FROM stopped
