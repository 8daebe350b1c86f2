-- Remember that a migration was applied, in its own transaction.
-- Locks: the new row. Index: primary key.
INSERT INTO {schema}.migrations (version, name) VALUES (%(version)s, %(name)s)
