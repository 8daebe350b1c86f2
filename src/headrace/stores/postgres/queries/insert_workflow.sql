-- Store the next version of a workflow and its graph, unless the latest one has the same; the caller holds the workflow.
-- Locks: the snapshot (key share; see insert_run), then the new rows. Index: primary keys.
WITH held AS MATERIALIZED (
  SELECT hash FROM {schema}.snapshots WHERE hash = %(snapshot)s::text FOR KEY SHARE
), added AS (
  INSERT INTO {schema}.snapshots (hash, graph)
  SELECT %(snapshot)s::text, %(graph)s WHERE NOT EXISTS (SELECT FROM held)
  ON CONFLICT (hash) DO NOTHING
)
INSERT INTO {schema}.workflows (name, version, snapshot, active, created_at)
SELECT %(name)s::text, coalesce(l.version, 0) + 1, %(snapshot)s::text, coalesce(l.active, true),
  coalesce(%(now)s::timestamptz, now())
FROM (SELECT 1) AS one LEFT JOIN LATERAL (
  SELECT w.version, w.active, w.snapshot FROM {schema}.workflows AS w
  WHERE w.name = %(name)s::text ORDER BY w.version DESC LIMIT 1) AS l ON true
WHERE l.snapshot IS DISTINCT FROM %(snapshot)s::text
