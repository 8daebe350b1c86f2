-- Count a batch's items by state; one that was retried counts as its retry. No row: there is no such batch.
-- Successes are all endings less the others, so that the long scan reads the index alone.
-- Locks: none. Index: jobs_batch, finished_jobs_items, finished_jobs_unsuccessful, the retry indexes.
SELECT b.total, ended.count - others.count AS succeeded, others.failed, others.cancelled, live.running, live.waiting
FROM {schema}.batches AS b
CROSS JOIN LATERAL (
  SELECT count(*) FILTER (WHERE j.state = 'running') AS running, count(*) FILTER (WHERE j.state <> 'running') AS waiting
  FROM {schema}.jobs AS j WHERE j.batch_id = b.id) AS live
CROSS JOIN LATERAL (SELECT count(*) AS count FROM {schema}.finished_jobs AS f WHERE f.batch_id = b.id) AS ended
CROSS JOIN LATERAL (
  SELECT count(*) AS count, count(*) FILTER (WHERE o.state = 'failed' AND NOT o.retried) AS failed,
    count(*) FILTER (WHERE o.state = 'cancelled' AND NOT o.retried) AS cancelled
  FROM (SELECT f.state, EXISTS (SELECT FROM {schema}.jobs AS r WHERE r.retry_of = f.id)
      OR EXISTS (SELECT FROM {schema}.finished_jobs AS r WHERE r.retry_of = f.id) AS retried
    FROM {schema}.finished_jobs AS f WHERE f.batch_id = b.id AND f.state <> 'succeeded') AS o) AS others
WHERE b.id = %(batch_id)s
