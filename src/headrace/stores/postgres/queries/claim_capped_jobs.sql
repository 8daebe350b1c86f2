-- Second half of a capped claim: jobs of the given limit keys up to each cap less what runs, and uncapped ones,
-- together at most the limit. A key without a row has no cap.
-- Locks: the picked rows, skipping locked ones; the limit rows are held by lock_limits in this transaction.
-- Index: jobs_running_capped to count, jobs_claim_capped and jobs_claim to pick, primary key to update.
WITH gate AS MATERIALIZED (
  SELECT ARRAY(SELECT b.id FROM {schema}.batches AS b WHERE b.state = 'cancelling') AS cancelling
  WHERE EXISTS (SELECT FROM {schema}.sessions AS s
      WHERE s.id = %(session)s AND s.expires_at > coalesce(%(now)s::timestamptz, now()))
    AND NOT EXISTS (SELECT FROM {schema}.queues AS q WHERE q.name = %(queue)s AND q.paused)
), room AS MATERIALIZED (
  SELECT k.key, greatest(0, least(%(limit)s::int, coalesce(
    l.cap - (SELECT count(*) FROM {schema}.jobs AS u WHERE u.limit_key = k.key AND u.state = 'running'),
    %(limit)s::int))) AS free
  FROM unnest(%(keys)s::text[]) AS k (key) LEFT JOIN {schema}.limits AS l ON l.key = k.key
  WHERE l.key IS NULL OR l.key = ANY(%(locked)s::text[])
), capped AS MATERIALIZED (
  SELECT p.id, p.sort_at FROM gate CROSS JOIN room CROSS JOIN LATERAL (
    SELECT r.id, r.sort_at FROM {schema}.jobs AS r
    WHERE r.limit_key = room.key AND r.state = 'ready' AND r.queue = %(queue)s
      AND (r.batch_id IS NULL OR r.batch_id <> ALL(gate.cancelling))
    ORDER BY r.sort_at, r.id LIMIT room.free FOR UPDATE SKIP LOCKED) AS p
), uncapped AS MATERIALIZED (
  SELECT p.id, p.sort_at FROM gate CROSS JOIN LATERAL (
    SELECT r.id, r.sort_at FROM {schema}.jobs AS r
    WHERE r.queue = %(queue)s AND r.state = 'ready' AND r.lane IS NULL AND r.limit_key IS NULL
      AND (r.batch_id IS NULL OR r.batch_id <> ALL(gate.cancelling))
    ORDER BY r.sort_at, r.id LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED) AS p
)
UPDATE {schema}.jobs AS j
SET state = 'running', session = %(session)s, attempt = j.attempt + 1,
  started_at = coalesce(%(now)s::timestamptz, now())
WHERE j.id = ANY(ARRAY(
  SELECT p.id FROM (SELECT * FROM capped UNION ALL SELECT * FROM uncapped) AS p
  ORDER BY p.sort_at, p.id LIMIT %(limit)s::int))
RETURNING j.id, j.task, j.queue, j.args, j.attempt, j.failures, j.crashes, j.max_attempts, j.timeout,
  j.cancel_requested, j.batch_id, j.ordinal, j.sort_at
