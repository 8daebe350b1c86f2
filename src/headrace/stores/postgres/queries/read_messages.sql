-- Messages of a partition from an offset on.
-- Locks: none. Index: log_topics_name, then the primary key of the messages, in its order.
SELECT m.position, m.key, m.value, m.headers FROM {schema}.log_messages AS m
WHERE m.topic_id = (SELECT t.id FROM {schema}.log_topics AS t WHERE t.name = %(topic)s)
  AND m.partition = %(partition)s::int AND m.position >= %(position)s::bigint
ORDER BY m.position
LIMIT %(limit)s::int
