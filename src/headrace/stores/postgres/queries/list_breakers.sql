-- Circuit breakers as they stand, all or those of the given keys, with the time of the store.
-- Locks: none. Index: primary key.
SELECT b.*, coalesce(%(now)s::timestamptz, clock_timestamp()) AS now FROM {schema}.breakers AS b
WHERE %(keys)s::text[] IS NULL OR b.key = ANY(%(keys)s::text[])
ORDER BY b.key
