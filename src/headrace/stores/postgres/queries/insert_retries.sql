-- Insert copies of final jobs, with all attempts before them, and with other arguments where some are given; held while
-- their batch is paused.
-- Locks: the new rows; the unique index on retry_of lets one retry of a job pass. Index: primary key of
-- finished_jobs, batches_paused.
INSERT INTO {schema}.jobs (id, batch_id, ordinal, retry_of, state, sort_at, created_at, queue, task, priority,
  max_attempts, timeout, at_most_once, lane, cost, args, parked_on)
SELECT c.id, f.batch_id, f.ordinal, f.id, CASE WHEN p.id IS NULL THEN 'ready' ELSE 'parked' END,
  t.now - (%(head_starts)s::interval[])[f.priority + 1], t.now,
  f.queue, f.task, f.priority, f.max_attempts, f.timeout, f.at_most_once, f.lane, f.cost,
  coalesce(c.args, f.args), chr(31) || p.id
FROM unnest(%(ids)s::uuid[], %(originals)s::uuid[], %(args)s::json[]) AS c (id, original, args)
JOIN {schema}.finished_jobs AS f ON f.id = c.original
LEFT JOIN {schema}.batches AS p ON p.id = f.batch_id AND p.paused_at IS NOT NULL
CROSS JOIN (SELECT coalesce(%(now)s::timestamptz, now()) AS now) AS t
