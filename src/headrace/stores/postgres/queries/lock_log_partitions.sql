-- Lock partitions and return their next offsets: up to the commit nobody else gives out offsets of them, so that offsets
-- are in the order of commits. They are named as the writer knows them; what it takes for the number of partitions of a
-- topic is to be compared with what is returned.
-- Locks: the rows, by topic and partition, as every writer does. Index: log_topics_name, or none: topics are few; then the
-- primary key.
SELECT t.name AS topic, t.partitions, p.topic_id, p.partition, p.next
FROM unnest(%(topics)s::text[], %(numbers)s::int[]) AS n (topic, partition)
  JOIN {schema}.log_topics AS t ON t.name = n.topic
  JOIN {schema}.log_partitions AS p ON p.topic_id = t.id AND p.partition = n.partition
ORDER BY p.topic_id, p.partition
FOR UPDATE OF p
