-- Read the versions of slots of a user, 0 of those that are not there.
-- Locks: none. Index: primary key.
SELECT g.topic, g.sub_topic, coalesce(p.version, 0) AS version
FROM unnest(%(topics)s::text[], %(sub_topics)s::text[]) AS g (topic, sub_topic)
LEFT JOIN {schema}.user_profiles AS p ON p.user_id = %(user_id)s::text AND p.topic = g.topic
  AND p.sub_topic = g.sub_topic AND p.content IS NOT NULL
