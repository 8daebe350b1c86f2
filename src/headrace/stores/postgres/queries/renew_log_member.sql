-- Let a member stay in its group for the time of a lease, or join it. Run after drop_log_members: one whose lease was over
-- joins anew.
-- Locks: its row. Index: primary key.
INSERT INTO {schema}.log_members (name, member, topics, expires_at)
VALUES (%(name)s, %(member)s, %(topics)s::text[], coalesce(%(now)s::timestamptz, now()) + %(lease)s::interval)
ON CONFLICT (name, member) DO UPDATE SET topics = excluded.topics, expires_at = excluded.expires_at
