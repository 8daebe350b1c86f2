-- Note how far a member of a group is, under its fence: the partition is its own, in this generation, and its lease not
-- over. Who takes a partition waits for this, or this for that, and then finds its fence gone. No offset goes back.
-- Locks: the rows, by topic and partition. Index: log_topics_name, primary keys.
WITH own AS MATERIALIZED (
  SELECT s.topic_id, s.partition, d.topic, d.position
  FROM unnest(%(topics)s::text[], %(partitions)s::int[], %(generations)s::int[], %(positions)s::bigint[])
      AS d (topic, partition, generation, position)
    JOIN {schema}.log_topics AS t ON t.name = d.topic COLLATE "C"
    JOIN {schema}.log_shares AS s ON s.name = %(name)s AND s.topic_id = t.id AND s.partition = d.partition
  WHERE s.member = %(member)s AND s.generation = d.generation
    AND EXISTS (SELECT FROM {schema}.log_members AS m WHERE m.name = %(name)s AND m.member = %(member)s
      AND m.expires_at > coalesce(%(now)s::timestamptz, now()))
  ORDER BY s.topic_id, s.partition
  FOR UPDATE OF s
)
UPDATE {schema}.log_shares AS s SET position = greatest(s.position, o.position) FROM own AS o
WHERE s.name = %(name)s AND s.topic_id = o.topic_id AND s.partition = o.partition
RETURNING o.topic, s.partition
