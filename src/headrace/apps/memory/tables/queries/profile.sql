-- Read what is known of a user.
-- Locks: none. Index: primary key.
SELECT topic, sub_topic, content, version, update_hits, updated_at
FROM {schema}.user_profiles WHERE user_id = %(user_id)s::text AND content IS NOT NULL ORDER BY topic, sub_topic
