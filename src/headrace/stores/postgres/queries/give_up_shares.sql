-- Free partitions that a member of a group reads; without names of topics all of them.
-- Locks: the rows, by topic and partition. Index: primary key: shares of a group are few.
WITH own AS MATERIALIZED (
  SELECT s.topic_id, s.partition FROM {schema}.log_shares AS s JOIN {schema}.log_topics AS t ON t.id = s.topic_id
  WHERE s.name = %(name)s AND s.member = %(member)s
    AND (%(topics)s::text[] IS NULL
      OR (t.name, s.partition) IN (SELECT * FROM unnest(%(topics)s::text[], %(partitions)s::int[])))
  ORDER BY s.topic_id, s.partition
  FOR UPDATE OF s
)
UPDATE {schema}.log_shares AS s SET member = NULL FROM own AS o
WHERE s.name = %(name)s AND s.topic_id = o.topic_id AND s.partition = o.partition
