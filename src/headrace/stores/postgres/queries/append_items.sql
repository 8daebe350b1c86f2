-- Append a slice of items to an open batch: its mark and its jobs, or nothing at all. Returns the mark; no row: the
-- batch is not open, or the slice, or one that overlaps it, is there already. What is due is held while
-- the batch is paused.
-- Locks: the batch row, shared: sealing and closing wait for it and so see these jobs; then the new rows.
-- Index: primary keys of batches, batch_slices and jobs.
WITH batch AS MATERIALIZED (
  SELECT b.*, coalesce(%(now)s::timestamptz, now()) AS now,
    b.paused_at IS NOT NULL AND (b.run_at > coalesce(%(now)s::timestamptz, now())) IS NOT TRUE AS holds
  FROM {schema}.batches AS b
  WHERE b.id = %(batch_id)s AND b.state = 'open'
  FOR SHARE
), mark AS (
  INSERT INTO {schema}.batch_slices (batch_id, first_ordinal, count, hash, created_at)
  SELECT b.id, %(first)s::int, cardinality(%(ids)s::uuid[]), %(hash)s, b.now FROM batch AS b
  WHERE NOT EXISTS (SELECT FROM {schema}.batch_slices AS o WHERE o.batch_id = b.id
    AND o.first_ordinal < %(first)s::int + cardinality(%(ids)s::uuid[])
    AND %(first)s::int < o.first_ordinal + o.count)
  ON CONFLICT (batch_id, first_ordinal) DO NOTHING
  RETURNING batch_id, first_ordinal
), items AS (
  INSERT INTO {schema}.jobs (id, batch_id, ordinal, state, sort_at, run_at, created_at, queue, task, priority,
    max_attempts, timeout, at_most_once, lane, cost, args, parked_on)
  SELECT i.id, b.id, m.first_ordinal + i.place::int - 1,
    CASE WHEN b.holds THEN 'parked' WHEN b.run_at > b.now THEN 'scheduled' ELSE 'ready' END,
    greatest(b.run_at, b.now) - (%(head_starts)s::interval[])[b.priority + 1],
    CASE WHEN NOT b.holds THEN b.run_at END, b.now, b.queue, b.task,
    b.priority, b.max_attempts, b.timeout, b.at_most_once, b.lane, b.cost, i.args,
    CASE WHEN b.holds THEN chr(31) || b.id END
  FROM batch AS b JOIN mark AS m ON m.batch_id = b.id
    CROSS JOIN unnest(%(ids)s::uuid[], %(args)s::json[]) WITH ORDINALITY AS i (id, args, place)
)
SELECT first_ordinal FROM mark
