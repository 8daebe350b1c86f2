-- Remove messages that are older, from the first of each partition on, up to what all groups that read it have committed.
-- Groups that read a topic have shares of all its partitions; those that nobody has been in for as long are not waited for.
-- A partition whose first message is young costs one look.
-- Locks: the removed rows. Index: primary key of the messages; partitions and shares are few and read through.
WITH passed AS (
  SELECT p.topic_id, p.partition, coalesce(min(s.position), p.next) AS upto
  FROM {schema}.log_partitions AS p
    LEFT JOIN ({schema}.log_shares AS s JOIN {schema}.log_groups AS g ON g.name = s.name
        AND g.live_until > coalesce(%(now)s::timestamptz, now()) - %(retention)s::interval)
      ON s.topic_id = p.topic_id AND s.partition = p.partition
  GROUP BY p.topic_id, p.partition, p.next
), old AS MATERIALIZED (
  SELECT o.topic_id, o.partition, o.position
  FROM passed AS d
    CROSS JOIN LATERAL (SELECT f.stored_at FROM {schema}.log_messages AS f
      WHERE f.topic_id = d.topic_id AND f.partition = d.partition ORDER BY f.position LIMIT 1) AS f
    CROSS JOIN LATERAL (SELECT m.topic_id, m.partition, m.position, m.stored_at FROM {schema}.log_messages AS m
      WHERE m.topic_id = d.topic_id AND m.partition = d.partition AND m.position < d.upto
      ORDER BY m.position LIMIT %(limit)s::int) AS o
  WHERE f.stored_at <= coalesce(%(now)s::timestamptz, now()) - %(retention)s::interval
    AND o.stored_at <= coalesce(%(now)s::timestamptz, now()) - %(retention)s::interval
  LIMIT %(limit)s::int
)
DELETE FROM {schema}.log_messages AS m USING old AS o
WHERE m.topic_id = o.topic_id AND m.partition = o.partition AND m.position = o.position
RETURNING m.position
