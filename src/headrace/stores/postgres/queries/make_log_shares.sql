-- Note that a group reads all partitions of some topics, from the first message on; run after lock_group.
-- Locks: the new rows. Index: primary key.
INSERT INTO {schema}.log_shares (name, topic_id, partition, generation, position)
SELECT %(name)s, p.topic_id, p.partition, 0, 0 FROM {schema}.log_partitions AS p
WHERE p.topic_id = ANY(%(topic_ids)s::int[])
ON CONFLICT (name, topic_id, partition) DO NOTHING
