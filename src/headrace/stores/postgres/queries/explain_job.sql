-- What is to be known of a job before its gate is asked: its state, its queue, its batch, and its lane with the first
-- that waits there, which stands for all of it; and whether others wait in other lanes.
-- Locks: none. Index: both primary keys; jobs_waiting or jobs_claim for at most so many entries of its lane, and for the
-- first and the last lane of its queue.
SELECT j.state, j.run_at, j.parked_on, j.queue, j.lane, t.now, coalesce(q.gated, false) AS gated, q.paused, q.reason,
  CASE WHEN b.state = 'cancelling' THEN b.id END AS cancelling, f.cost,
  CASE WHEN b.paused_at IS NOT NULL THEN b.id END AS held, b.paused_reason,
  (SELECT count(*) FROM (SELECT FROM {schema}.jobs AS o
    WHERE o.queue = j.queue AND o.state = 'ready' AND o.lane = j.lane AND (o.sort_at, o.id) < (j.sort_at, j.id)
      AND (o.batch_id IS NULL OR o.batch_id <> ALL(t.cancelling))
    LIMIT %(bound)s::int) AS c)
  + (SELECT count(*) FROM (SELECT FROM {schema}.jobs AS o
    WHERE o.queue = j.queue AND o.state = 'ready' AND o.lane IS NULL AND j.lane IS NULL
      AND (o.sort_at, o.id) < (j.sort_at, j.id) AND (o.batch_id IS NULL OR o.batch_id <> ALL(t.cancelling))
    LIMIT %(bound)s::int) AS c) AS ahead,
  coalesce(q.gated, false) AND (
    coalesce((SELECT min(o.lane) FROM {schema}.jobs AS o WHERE o.queue = j.queue AND o.state = 'ready'
      AND (o.batch_id IS NULL OR o.batch_id <> ALL(t.cancelling))) < coalesce(j.lane, '{}'), false)
    OR coalesce((SELECT max(o.lane) FROM {schema}.jobs AS o WHERE o.queue = j.queue AND o.state = 'ready'
      AND (o.batch_id IS NULL OR o.batch_id <> ALL(t.cancelling))) > coalesce(j.lane, '{}'), false)
    OR coalesce(j.lane, '{}') <> '{}' AND EXISTS (SELECT FROM {schema}.jobs AS o
      WHERE o.queue = j.queue AND o.state = 'ready' AND o.lane IS NULL
        AND (o.batch_id IS NULL OR o.batch_id <> ALL(t.cancelling)))) AS others,
  EXISTS (SELECT FROM {schema}.sessions AS s CROSS JOIN json_object_keys(s.queues) AS n (name)
    WHERE s.expires_at > t.now AND n.name = j.queue) AS served
FROM {schema}.jobs AS j
CROSS JOIN (SELECT coalesce(%(now)s::timestamptz, now()) AS now,
  ARRAY(SELECT c.id FROM {schema}.batches AS c WHERE c.state = 'cancelling') AS cancelling) AS t
LEFT JOIN {schema}.queues AS q ON q.name = j.queue
LEFT JOIN {schema}.batches AS b ON b.id = j.batch_id
LEFT JOIN LATERAL (
  (SELECT o.cost FROM {schema}.jobs AS o
  WHERE o.queue = j.queue AND o.state = 'ready' AND o.lane = j.lane
    AND (o.batch_id IS NULL OR o.batch_id <> ALL(t.cancelling)) ORDER BY o.sort_at, o.id LIMIT 1)
  UNION ALL
  (SELECT o.cost FROM {schema}.jobs AS o
  WHERE o.queue = j.queue AND o.state = 'ready' AND o.lane IS NULL AND j.lane IS NULL
    AND (o.batch_id IS NULL OR o.batch_id <> ALL(t.cancelling)) ORDER BY o.sort_at, o.id LIMIT 1)) AS f ON true
WHERE j.id = %(job_id)s
UNION ALL
SELECT f.state, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM {schema}.finished_jobs AS f WHERE f.id = %(job_id)s
