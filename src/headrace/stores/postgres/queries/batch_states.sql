-- What items of a batch are, ordinals `first` to before `stop`: rows that hide those before them, each the ordinals of
-- a state; the first has the end of what was appended. No row: no such batch. What ended is read from the index alone,
-- and succeeded unless a later row knows better. What waits is not read while whatever was appended and is nothing else
-- must be ready: `whole`, in the first round of a batch that is not closed, when nothing can have been pruned.
-- Locks: none. Index: primary keys, jobs_batch, jobs_retry, finished_jobs_items, finished_jobs_unsuccessful,
-- finished_jobs_retry.
WITH batch AS MATERIALIZED (
  SELECT b.id, b.state <> 'closed' AND b.round = 1 AS whole FROM {schema}.batches AS b WHERE b.id = %(batch_id)s
)
SELECT 0 AS place, NULL AS state, (SELECT ARRAY[s.first_ordinal + s.count] FROM {schema}.batch_slices AS s
  WHERE s.batch_id = b.id ORDER BY s.first_ordinal DESC LIMIT 1) AS ordinals
FROM batch AS b
UNION ALL
SELECT 1, 'slices', (SELECT array_agg(v.bound) FROM {schema}.batch_slices AS s
  CROSS JOIN LATERAL (VALUES (s.first_ordinal), (s.first_ordinal + s.count)) AS v (bound)
  WHERE s.batch_id = b.id AND s.first_ordinal < %(stop)s::int AND s.first_ordinal + s.count > %(first)s::int)
FROM batch AS b WHERE b.whole
UNION ALL
SELECT 2, 'succeeded', (SELECT array_agg(f.ordinal) FROM {schema}.finished_jobs AS f
  WHERE f.batch_id = b.id AND f.ordinal >= %(first)s::int AND f.ordinal < %(stop)s::int)
FROM batch AS b
UNION ALL
SELECT 3, f.state, array_agg(f.ordinal) FROM {schema}.finished_jobs AS f
WHERE f.batch_id = %(batch_id)s AND f.state <> 'succeeded'
  AND f.ordinal >= %(first)s::int AND f.ordinal < %(stop)s::int
  AND NOT EXISTS (SELECT FROM {schema}.finished_jobs AS r WHERE r.retry_of = f.id)
GROUP BY f.state
UNION ALL
SELECT 4, j.state, array_agg(j.ordinal) FROM {schema}.jobs AS j
WHERE j.batch_id = %(batch_id)s AND j.state IN ('scheduled', 'running', 'parked')
  AND j.ordinal >= %(first)s::int AND j.ordinal < %(stop)s::int
GROUP BY j.state
UNION ALL
SELECT 5, 'ready', CASE WHEN b.whole
  THEN (SELECT array_agg(j.ordinal) FROM {schema}.jobs AS j
    WHERE j.retry_of IS NOT NULL AND j.batch_id = b.id AND j.state = 'ready'
      AND j.ordinal >= %(first)s::int AND j.ordinal < %(stop)s::int)
  ELSE (SELECT array_agg(j.ordinal) FROM {schema}.jobs AS j
    WHERE j.batch_id = b.id AND j.state = 'ready' AND j.ordinal >= %(first)s::int AND j.ordinal < %(stop)s::int) END
FROM batch AS b
ORDER BY place
