-- How some nodes of a run ended, in the order of their ends.
-- Locks: none. Index: primary key.
SELECT path, state, output, port, error, artifact, attempts, reused, started_at, finished_at
FROM {schema}.run_nodes WHERE run_id = %(run_id)s AND path = ANY(%(paths)s::text[]) ORDER BY seq
