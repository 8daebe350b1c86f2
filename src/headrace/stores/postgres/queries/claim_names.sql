-- Take names whose keys are free in a scope, or return those that the caller has not seen: see the function in schema.sql.
-- Locks: the row of the scope; claims of one scope take turns. Index: the keys, known_names_once.
SELECT c.* FROM {schema}.claim_names(%(scope)s::text, %(owners)s::uuid[], %(keys)s::text[], %(names)s::text[],
  %(seen)s::bigint) AS c
ORDER BY c.position
