-- Count what already runs in queues that have a cap for the first time: jobs that no admission started have no lane.
-- Locks: the running rows, skipping locked ones. Index: none, one scan of the hot table per new cap of a queue.
UPDATE {schema}.jobs AS j SET lane = '{}'
WHERE j.id = ANY(ARRAY(SELECT r.id FROM {schema}.jobs AS r
  WHERE r.queue = ANY(%(queues)s::text[]) AND r.state = 'running' AND r.lane IS NULL FOR UPDATE SKIP LOCKED))
