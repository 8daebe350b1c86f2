-- Remove a member from its group, which is alive as long as those that stay; run after lock_group and give_up_shares.
-- Locks: the row of the member and that of the group. Index: primary keys.
WITH gone AS (
  DELETE FROM {schema}.log_members AS m WHERE m.name = %(name)s AND m.member = %(member)s
  RETURNING m.name
)
UPDATE {schema}.log_groups AS g SET live_until = least(g.live_until, greatest(coalesce(%(now)s::timestamptz, now()),
  (SELECT max(o.expires_at) FROM {schema}.log_members AS o WHERE o.name = %(name)s AND o.member <> %(member)s)))
FROM gone AS d
WHERE g.name = d.name
