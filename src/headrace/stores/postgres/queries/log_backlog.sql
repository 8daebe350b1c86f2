-- How many messages of each partition a group has not committed, of those that are kept.
-- Locks: none. Index: primary keys; the first message by that of the messages.
SELECT t.name AS topic, s.partition, p.next - greatest(s.position, coalesce(
  (SELECT min(m.position) FROM {schema}.log_messages AS m WHERE m.topic_id = s.topic_id AND m.partition = s.partition),
  p.next)) AS waiting
FROM {schema}.log_shares AS s
  JOIN {schema}.log_partitions AS p ON p.topic_id = s.topic_id AND p.partition = s.partition
  JOIN {schema}.log_topics AS t ON t.id = s.topic_id
WHERE s.name = %(name)s
