-- Those of the given runs that exist.
-- Locks: none. Index: primary key.
SELECT id FROM {schema}.runs WHERE id = ANY(%(run_ids)s::uuid[])
