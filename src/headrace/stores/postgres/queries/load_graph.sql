-- The graph of a snapshot.
-- Locks: none. Index: primary key.
SELECT graph FROM {schema}.snapshots WHERE hash = %(snapshot)s
