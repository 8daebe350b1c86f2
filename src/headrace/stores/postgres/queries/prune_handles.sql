-- Remove handles with their events; of early events only those that are as old, and the row with the last of them. Run
-- after hold_old_handles, in a snapshot of its own, so that it sees what was kept while that waited.
-- Locks: the rows, held before, and their events. Index: primary keys.
WITH young AS MATERIALIZED (
  SELECT e.correlation_id, min(e.noted_at) AS since
  FROM {schema}.flow_resume_handles AS h JOIN {schema}.resume_events AS e ON e.correlation_id = h.correlation_id
  WHERE h.correlation_id = ANY(%(correlation_ids)s::text[]) AND h.state = 'early'
    AND e.noted_at > coalesce(%(now)s::timestamptz, now()) - %(retention)s::interval
  GROUP BY e.correlation_id
), old AS (
  DELETE FROM {schema}.resume_events AS e
  WHERE e.correlation_id = ANY(%(correlation_ids)s::text[])
    AND NOT EXISTS (SELECT FROM young AS y WHERE y.correlation_id = e.correlation_id AND y.since <= e.noted_at)
), moved AS (
  UPDATE {schema}.flow_resume_handles AS h SET created_at = y.since FROM young AS y
  WHERE h.correlation_id = y.correlation_id
)
DELETE FROM {schema}.flow_resume_handles AS h
WHERE h.correlation_id = ANY(%(correlation_ids)s::text[])
  AND NOT EXISTS (SELECT FROM young AS y WHERE y.correlation_id = h.correlation_id)
RETURNING h.correlation_id
