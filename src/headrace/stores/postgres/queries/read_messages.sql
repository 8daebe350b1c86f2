-- Messages of partitions from an offset of each on, in the order of the partitions: those that have any get equal parts of
-- the limit; where they are more than that, the first of them get one each. One look tells whether there are any.
-- Locks: none. Index: log_topics_name, or none: topics are few; then the primary key of the messages, in its order.
WITH waiting AS MATERIALIZED (
  SELECT s.turn, s.topic, t.id, s.partition, s.position, greatest(%(limit)s::int / count(*) OVER (), 1) AS part
  FROM unnest(%(topics)s::text[], %(partitions)s::int[], %(positions)s::bigint[]) WITH ORDINALITY
      AS s (topic, partition, position, turn)
    JOIN {schema}.log_topics AS t ON t.name = s.topic
    CROSS JOIN LATERAL (SELECT FROM {schema}.log_messages AS f
      WHERE f.topic_id = t.id AND f.partition = s.partition AND f.position >= s.position
      ORDER BY f.position LIMIT 1) AS f
  ORDER BY s.turn
  LIMIT %(limit)s::int
)
SELECT w.topic, w.partition, m.position, m.key, m.value, m.headers
FROM waiting AS w
  CROSS JOIN LATERAL (SELECT r.position, r.key, r.value, r.headers FROM {schema}.log_messages AS r
    WHERE r.topic_id = w.id AND r.partition = w.partition AND r.position >= w.position
    ORDER BY r.position LIMIT w.part) AS m
ORDER BY w.turn, m.position
