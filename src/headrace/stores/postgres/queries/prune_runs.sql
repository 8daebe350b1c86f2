-- Remove final runs that ended longer ago, oldest first, with their nodes, sums and keys; returns their snapshots.
-- Locks: the removed rows; runs that are locked are skipped. Index: runs_finished, the primary keys.
WITH old AS MATERIALIZED (
  SELECT r.id, r.workflow, r.key FROM {schema}.runs AS r
  WHERE r.finished_at IS NOT NULL AND r.finished_at <= coalesce(%(now)s::timestamptz, now()) - %(retention)s::interval
  ORDER BY r.finished_at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED
), nodes AS (
  DELETE FROM {schema}.run_nodes WHERE run_id = ANY(ARRAY(SELECT id FROM old))
), joins AS (
  DELETE FROM {schema}.run_joins WHERE run_id = ANY(ARRAY(SELECT id FROM old))
), keys AS (
  DELETE FROM {schema}.idempotency_keys
  WHERE scope = ANY(ARRAY(SELECT DISTINCT ('run:' || workflow) COLLATE "default" FROM old))
    AND key = ANY(ARRAY(SELECT DISTINCT key FROM old)) AND id = ANY(ARRAY(SELECT id FROM old))
)
DELETE FROM {schema}.runs WHERE id = ANY(ARRAY(SELECT id FROM old)) RETURNING snapshot
