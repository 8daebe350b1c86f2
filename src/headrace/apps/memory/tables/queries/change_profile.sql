-- Change slots of a user, each made from the version it names; return those whose version differs: the caller then
-- takes all back. A deleted slot that is added again goes on from its last version.
-- Locks: the user, then the slots. Index: primary keys.
WITH person AS MATERIALIZED (
  SELECT id FROM {schema}.users WHERE id = %(user_id)s::text FOR NO KEY UPDATE
), given AS MATERIALIZED (
  SELECT * FROM unnest(%(ops)s::text[], %(topics)s::text[], %(sub_topics)s::text[], %(contents)s::text[],
    %(versions)s::int[]) AS g (op, topic, sub_topic, content, version)
), added AS (
  INSERT INTO {schema}.user_profiles AS p (user_id, topic, sub_topic, content)
  SELECT person.id, g.topic, g.sub_topic, g.content FROM person CROSS JOIN given AS g WHERE g.op = 'add'
  ON CONFLICT (user_id, topic, sub_topic) DO UPDATE
  SET content = excluded.content, version = p.version + 1, update_hits = 0, created_at = now(), updated_at = now()
  WHERE p.content IS NULL
  RETURNING p.topic, p.sub_topic
), changed AS (
  UPDATE {schema}.user_profiles AS p
  SET content = g.content, version = p.version + 1, update_hits = p.update_hits + 1, updated_at = now()
  FROM person CROSS JOIN given AS g
  WHERE p.user_id = person.id AND p.topic = g.topic AND p.sub_topic = g.sub_topic AND g.op <> 'add'
    AND p.version = g.version AND p.content IS NOT NULL
  RETURNING p.topic, p.sub_topic
)
SELECT g.topic, g.sub_topic, g.version FROM given AS g
WHERE (g.topic, g.sub_topic) NOT IN (SELECT topic, sub_topic FROM added UNION ALL SELECT topic, sub_topic FROM changed)
ORDER BY g.topic, g.sub_topic
