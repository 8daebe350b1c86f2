-- Groups with their live members, what they have not committed of what is kept, and when they last had a member.
-- Locks: none. Index: primary keys; the first message by that of the messages. Groups and shares are few, and read through.
SELECT g.name, least(g.live_until, coalesce(%(now)s::timestamptz, now())) AS seen_at,
  (SELECT count(*) FROM {schema}.log_members AS m
    WHERE m.name = g.name AND m.expires_at > coalesce(%(now)s::timestamptz, now())) AS members,
  (SELECT coalesce(sum(p.next - greatest(s.position, coalesce(
      (SELECT min(m.position) FROM {schema}.log_messages AS m
        WHERE m.topic_id = s.topic_id AND m.partition = s.partition), p.next))), 0)::bigint
    FROM {schema}.log_shares AS s
      JOIN {schema}.log_partitions AS p ON p.topic_id = s.topic_id AND p.partition = s.partition
    WHERE s.name = g.name) AS backlog
FROM {schema}.log_groups AS g
ORDER BY g.name
