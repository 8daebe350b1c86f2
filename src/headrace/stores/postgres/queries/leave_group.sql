-- Remove a member from its group; run after give_up_shares.
-- Locks: its row. Index: primary key.
DELETE FROM {schema}.log_members AS m WHERE m.name = %(name)s AND m.member = %(member)s
