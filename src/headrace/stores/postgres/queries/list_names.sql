-- The names of a scope with later positions, in order.
-- Locks: none. Index: primary key.
SELECT n.key, n.name, n.owner, n.position FROM {schema}.known_names AS n
WHERE n.scope = %(scope)s AND n.position > %(after)s::bigint ORDER BY n.position
