-- Make topics that are missing, with their partitions. Another that makes the same one is waited for; read them anew behind
-- this. All topics of a transaction are made before any partition of it is locked.
-- Locks: the new rows, by name. Index: log_topics_name, primary keys.
WITH made AS (
  INSERT INTO {schema}.log_topics (name, partitions)
  SELECT n.name, %(partitions)s::int FROM unnest(%(names)s::text[]) AS n (name) ORDER BY n.name COLLATE "C"
  ON CONFLICT (name) DO NOTHING
  RETURNING id, partitions
)
INSERT INTO {schema}.log_partitions (topic_id, partition, next)
SELECT m.id, n, 0 FROM made AS m CROSS JOIN generate_series(0, m.partitions - 1) AS n
