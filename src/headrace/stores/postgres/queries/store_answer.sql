-- Keep a paid answer, once and from anyone; no row: the key is taken, also by a transaction this had to wait for.
-- Locks: the new row. Index: primary key.
INSERT INTO {schema}.answers (key, answer, created_at)
VALUES (%(key)s, %(answer)s, coalesce(%(now)s::timestamptz, now()))
ON CONFLICT (key) DO NOTHING
RETURNING key
