-- Store caps as an app declares them.
-- Locks: the rows, in the order given (the caller sorts by key, as admission does). Index: primary key.
INSERT INTO {schema}.limits AS l (key, cap)
SELECT key, cap FROM unnest(%(keys)s::text[], %(caps)s::int[]) WITH ORDINALITY AS c (key, cap, place) ORDER BY c.place
ON CONFLICT (key) DO UPDATE SET cap = excluded.cap WHERE l.cap IS DISTINCT FROM excluded.cap
