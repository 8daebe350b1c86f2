-- Insert copies of final jobs, with all attempts before them, and with other arguments where some are given.
-- Locks: the new rows; the unique index on retry_of lets one retry of a job pass. Index: primary key of finished_jobs.
INSERT INTO {schema}.jobs (id, batch_id, ordinal, retry_of, state, sort_at, created_at, queue, task, priority,
  max_attempts, timeout, at_most_once, lane, cost, args)
SELECT c.id, f.batch_id, f.ordinal, f.id, 'ready', t.now - (%(head_starts)s::interval[])[f.priority + 1], t.now,
  f.queue, f.task, f.priority, f.max_attempts, f.timeout, f.at_most_once, f.lane, f.cost,
  coalesce(c.args, f.args)
FROM unnest(%(ids)s::uuid[], %(originals)s::uuid[], %(args)s::json[]) AS c (id, original, args)
JOIN {schema}.finished_jobs AS f ON f.id = c.original,
  (SELECT coalesce(%(now)s::timestamptz, now()) AS now) AS t
