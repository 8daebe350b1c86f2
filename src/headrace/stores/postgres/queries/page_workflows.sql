-- The latest version of each workflow behind a name, without its graph, by name.
-- Locks: none. Index: primary key.
SELECT DISTINCT ON (w.name) w.name, w.version, w.snapshot, w.active, w.created_at
FROM {schema}.workflows AS w
WHERE w.name > %(after)s::text
ORDER BY w.name, w.version DESC LIMIT %(limit)s::int
