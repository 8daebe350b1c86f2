-- A version of a workflow with its graph, or the latest one.
-- Locks: none. Index: primary keys.
SELECT w.name, w.version, w.snapshot, s.graph, w.active, w.created_at
FROM {schema}.workflows AS w JOIN {schema}.snapshots AS s ON s.hash = w.snapshot
WHERE w.name = %(name)s AND w.version = coalesce(%(version)s::int, w.version)
ORDER BY w.version DESC LIMIT 1
