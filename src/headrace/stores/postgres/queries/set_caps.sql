-- Set the caps of limit keys; claims in flight finish under the old ones.
-- Locks: the key rows, in the order given (the caller sorts by key, as lock_limits does). Index: primary key.
INSERT INTO {schema}.limits AS l (key, cap)
SELECT key, cap FROM unnest(%(keys)s::text[], %(caps)s::int[]) WITH ORDINALITY AS c (key, cap, place) ORDER BY c.place
ON CONFLICT (key) DO UPDATE SET cap = excluded.cap WHERE l.cap <> excluded.cap
