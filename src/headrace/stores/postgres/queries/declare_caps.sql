-- Store caps as an app declares them; returns those that were not there before.
-- Locks: the rows, in the order given (the caller sorts by key, as admission does). Index: primary key.
WITH known AS MATERIALIZED (
  SELECT l.key FROM {schema}.limits AS l WHERE l.key = ANY(%(keys)s::text[])
), stored AS (
  INSERT INTO {schema}.limits AS l (key, cap)
  SELECT key, cap FROM unnest(%(keys)s::text[], %(caps)s::int[]) WITH ORDINALITY AS c (key, cap, place) ORDER BY c.place
  ON CONFLICT (key) DO UPDATE SET cap = excluded.cap WHERE l.cap IS DISTINCT FROM excluded.cap
)
SELECT c.key FROM unnest(%(keys)s::text[]) AS c (key) WHERE c.key NOT IN (SELECT k.key FROM known AS k)
