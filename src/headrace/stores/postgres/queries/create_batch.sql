-- Create a batch with its key and its items, all or nothing: sealed with its total, or open without one. No row: its
-- key or its id is stored already. The key lives as long as the batch; a key that another open transaction is inserting
-- makes this wait for its end (bounded by lock_timeout).
-- Queues that a job or callback of it makes gated are noted with it.
-- Locks: the key row, then the other new rows; rows of queues that become gated. Index: the primary keys of all tables.
WITH named AS (
  INSERT INTO {schema}.idempotency_keys (scope, key, id, body_hash)
  SELECT %(scope)s, %(key)s::text, %(id)s::uuid, %(body_hash)s::text WHERE %(key)s::text IS NOT NULL
  ON CONFLICT (scope, key) DO NOTHING
  RETURNING id
), batch AS (
  INSERT INTO {schema}.batches
    (id, run_at, created_at, opened_at, sealed_at, timeout, total, max_failed, priority, max_attempts, at_most_once,
     state, queue, task, lane, cost, key, body_hash, on_close)
  SELECT %(id)s::uuid, %(run_at)s::timestamptz, t.now, t.now, CASE WHEN %(sealed)s::boolean THEN t.now END,
    %(timeout)s::interval, CASE WHEN %(sealed)s::boolean THEN cardinality(%(ids)s::uuid[]) END, %(max_failed)s::int,
    %(priority)s::smallint, %(max_attempts)s::smallint, %(at_most_once)s::boolean,
    CASE WHEN %(sealed)s::boolean THEN 'sealed' ELSE 'open' END, %(queue)s::text, %(task)s::text,
    %(lane)s::text, %(cost)s::double precision, %(key)s::text, %(body_hash)s::text, %(on_close)s::json
  FROM (SELECT coalesce(%(now)s::timestamptz, now()) AS now) AS t
  WHERE %(key)s::text IS NULL OR EXISTS (SELECT FROM named)
  ON CONFLICT (id) DO NOTHING
  RETURNING id, created_at
), mark AS (
  INSERT INTO {schema}.batch_slices (batch_id, first_ordinal, count, hash, created_at)
  SELECT b.id, 0, cardinality(%(ids)s::uuid[]), %(body_hash)s::text, b.created_at FROM batch AS b
  WHERE cardinality(%(ids)s::uuid[]) > 0
), items AS (
  INSERT INTO {schema}.jobs (id, batch_id, ordinal, state, sort_at, run_at, created_at, queue, task, priority,
    max_attempts, timeout, at_most_once, lane, cost, args)
  SELECT i.id, b.id, i.place::int - 1, CASE WHEN %(run_at)s::timestamptz > b.created_at THEN 'scheduled' ELSE 'ready' END,
    greatest(%(run_at)s::timestamptz, b.created_at) - %(head_start)s::interval, %(run_at)s::timestamptz, b.created_at,
    %(queue)s::text, %(task)s::text, %(priority)s::smallint, %(max_attempts)s::smallint, %(timeout)s::interval,
    %(at_most_once)s::boolean, %(lane)s::text, %(cost)s::double precision, i.args
  FROM batch AS b CROSS JOIN unnest(%(ids)s::uuid[], %(args)s::json[]) WITH ORDINALITY AS i (id, args, place)
), gated AS (
  INSERT INTO {schema}.queues (name, gated)
  SELECT g.queue, true FROM unnest(%(gated)s::text[]) AS g (queue)
  WHERE NOT EXISTS (SELECT FROM {schema}.queues AS q WHERE q.name = g.queue AND q.gated)
  ON CONFLICT (name) DO UPDATE SET gated = true
)
SELECT id FROM batch
