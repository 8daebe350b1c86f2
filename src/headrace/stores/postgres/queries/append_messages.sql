-- Insert messages at their offsets and note the next offsets of their partitions; run after lock_log_partitions. The time
-- is that of the statement: of a partition none is before that of an earlier message.
-- Locks: the rows of the partitions, held before. Index: primary keys.
WITH moved AS (
  UPDATE {schema}.log_partitions AS p SET next = n.next
  FROM unnest(%(moved_topics)s::int[], %(moved_partitions)s::int[], %(nexts)s::bigint[]) AS n (topic_id, partition, next)
  WHERE p.topic_id = n.topic_id AND p.partition = n.partition
)
INSERT INTO {schema}.log_messages (topic_id, partition, position, stored_at, key, value, headers)
SELECT m.topic_id, m.partition, m.position, coalesce(%(now)s::timestamptz, clock_timestamp()), m.key, m.value,
  m.headers::json
FROM unnest(%(topic_ids)s::int[], %(partitions)s::int[], %(positions)s::bigint[], %(keys)s::bytea[],
  %(values)s::bytea[], %(headers)s::text[]) AS m (topic_id, partition, position, key, value, headers)
