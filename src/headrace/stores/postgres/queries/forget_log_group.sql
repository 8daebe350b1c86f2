-- Remove a group in which nobody is; no row: there is none. Run after forget_log_shares.
-- Locks: its row. Index: primary key.
DELETE FROM {schema}.log_groups AS g WHERE g.name = %(name)s
RETURNING g.name
