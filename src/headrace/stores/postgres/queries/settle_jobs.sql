-- Mark unsettled jobs as settled; returns those that were not before, whose effects follow in the same transaction.
-- Locks: the history rows, by id. Index: primary key.
WITH held AS MATERIALIZED (
  SELECT f.id FROM {schema}.finished_jobs AS f
  WHERE f.id = ANY(%(job_ids)s::uuid[]) AND f.settled IS DISTINCT FROM true
  ORDER BY f.id FOR UPDATE
)
UPDATE {schema}.finished_jobs AS f SET settled = true FROM held AS h WHERE f.id = h.id AND f.run_id IS NOT NULL
RETURNING f.id
