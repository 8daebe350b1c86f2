-- Remove those of the given snapshots that no run and no workflow uses; run after hold_snapshots, in a snapshot of its own.
-- Locks: the removed rows, held before. Index: primary keys, runs_snapshot; workflows are few and read through.
DELETE FROM {schema}.snapshots AS s
WHERE s.hash = ANY(%(hashes)s::text[])
  AND NOT EXISTS (SELECT FROM {schema}.runs AS r WHERE r.snapshot = s.hash OFFSET 0)
  AND NOT EXISTS (SELECT FROM {schema}.workflows AS w WHERE w.snapshot = s.hash OFFSET 0)
RETURNING s.hash
