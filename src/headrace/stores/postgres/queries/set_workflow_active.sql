-- Allow or forbid starts of a workflow, all versions; the caller holds the workflow.
-- Locks: its rows. Index: primary key.
UPDATE {schema}.workflows SET active = %(active)s WHERE name = %(name)s RETURNING version
