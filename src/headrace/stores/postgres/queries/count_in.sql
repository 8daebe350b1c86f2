-- Count what already runs in queues that are about to have a cap for the first time: jobs that no admission started have
-- no lane. Returns a row if somebody held one of them: call it again.
-- Locks: the running rows, skipping locked ones. Index: none, two scans of the hot table per new cap of a queue.
WITH found AS MATERIALIZED (
  SELECT r.id FROM {schema}.jobs AS r
  WHERE r.state = 'running' AND r.lane IS NULL AND r.queue IN (
    SELECT substr(c.key, 7) FROM unnest(%(caps)s::text[]) AS c (key)
    WHERE NOT EXISTS (SELECT FROM {schema}.limits AS k WHERE k.key = c.key))
), free AS MATERIALIZED (
  SELECT j.id FROM {schema}.jobs AS j WHERE j.id IN (SELECT f.id FROM found AS f) AND j.state = 'running'
  FOR UPDATE SKIP LOCKED
), counted AS (
  UPDATE {schema}.jobs AS j SET lane = '{}' FROM free AS f WHERE j.id = f.id RETURNING j.id
)
SELECT f.id FROM found AS f WHERE f.id NOT IN (SELECT c.id FROM counted AS c) LIMIT 1
