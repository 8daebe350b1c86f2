-- Set the weight of a fair key; the next admission goes by it.
-- Locks: the row. Index: primary key.
INSERT INTO {schema}.shares (queue, fair_key, weight) VALUES (%(queue)s, %(fair_key)s, %(weight)s::float8)
ON CONFLICT (queue, fair_key) DO UPDATE SET weight = excluded.weight
