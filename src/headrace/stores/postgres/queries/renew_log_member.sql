-- Let a member stay in its group for the time of a lease, or join it. Run after drop_log_members: one whose lease was over
-- joins anew. The group is alive as long as its last membership.
-- Locks: the row of the group and that of the member, under lock_group. Index: primary keys.
WITH grown AS (
  INSERT INTO {schema}.log_groups AS g (name, live_until)
  VALUES (%(name)s, coalesce(%(now)s::timestamptz, now()) + %(lease)s::interval)
  ON CONFLICT (name) DO UPDATE SET live_until = greatest(g.live_until, excluded.live_until)
)
INSERT INTO {schema}.log_members (name, member, topics, expires_at)
VALUES (%(name)s, %(member)s, %(topics)s::text[], coalesce(%(now)s::timestamptz, now()) + %(lease)s::interval)
ON CONFLICT (name, member) DO UPDATE SET topics = excluded.topics, expires_at = excluded.expires_at
