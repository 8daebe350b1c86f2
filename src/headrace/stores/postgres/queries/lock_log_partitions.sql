-- Lock partitions and return their next offsets: up to the commit nobody else gives out offsets of them, so that offsets
-- are in the order of commits.
-- Locks: the rows, by topic and partition, as every writer does. Index: primary key.
SELECT p.topic_id, p.partition, p.next FROM {schema}.log_partitions AS p
WHERE (p.topic_id, p.partition) IN (SELECT * FROM unnest(%(topic_ids)s::int[], %(partitions)s::int[]))
ORDER BY p.topic_id, p.partition
FOR UPDATE
