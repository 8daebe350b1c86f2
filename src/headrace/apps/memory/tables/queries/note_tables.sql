-- Note which shape the tables have, and what tells of changes.
-- Locks: the one row. Index: primary key.
INSERT INTO {schema}.about (version, changes) VALUES (%(version)s::int, %(changes)s::text)
ON CONFLICT (one) DO UPDATE SET version = excluded.version, changes = excluded.changes
