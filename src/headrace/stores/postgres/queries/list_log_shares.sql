-- Who of a group reads which partition of some topics, and what else a member of it reads. An offset is not before the
-- first message that is kept.
-- Locks: none. Index: primary key; the first message by that of the messages.
SELECT s.topic_id, t.name AS topic, s.partition, s.member, s.generation, greatest(s.position,
  (SELECT min(m.position) FROM {schema}.log_messages AS m WHERE m.topic_id = s.topic_id AND m.partition = s.partition))
  AS position
FROM {schema}.log_shares AS s JOIN {schema}.log_topics AS t ON t.id = s.topic_id
WHERE s.name = %(name)s AND (s.topic_id = ANY(%(topic_ids)s::int[]) OR s.member = %(member)s)
