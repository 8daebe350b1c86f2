-- Hold snapshots that may have to go, before it is asked who uses them; those that a start holds are left.
-- Locks: the snapshots, skipping locked ones. Index: primary key.
SELECT hash FROM {schema}.snapshots WHERE hash = ANY(%(hashes)s::text[]) FOR UPDATE SKIP LOCKED
