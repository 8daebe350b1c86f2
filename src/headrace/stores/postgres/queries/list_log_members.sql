-- The members of a group and what they read; run after drop_log_members, all of them live.
-- Locks: none. Index: primary key.
SELECT m.member, m.topics FROM {schema}.log_members AS m WHERE m.name = %(name)s
