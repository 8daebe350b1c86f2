-- The latest version of each workflow with its graph, by name.
-- Locks: none. Index: primary keys.
SELECT w.name, w.version, w.snapshot, s.graph, w.active, w.created_at
FROM (SELECT DISTINCT ON (name) * FROM {schema}.workflows ORDER BY name, version DESC) AS w
  JOIN {schema}.snapshots AS s ON s.hash = w.snapshot
ORDER BY w.name
