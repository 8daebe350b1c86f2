-- Make a user, or change its level and language.
-- Locks: the user. Index: primary key.
INSERT INTO {schema}.users (id, level, language)
VALUES (%(user_id)s::text, %(level)s::int, %(language)s::text)
ON CONFLICT (id) DO UPDATE SET level = excluded.level, language = excluded.language
