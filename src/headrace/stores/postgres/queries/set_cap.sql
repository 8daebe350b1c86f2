-- Override a cap, or return to the declared one (NULL). No running job is stopped. Returns the key if it is new.
-- Locks: the row. Index: primary key.
WITH known AS MATERIALIZED (
  SELECT l.key FROM {schema}.limits AS l WHERE l.key = %(key)s::text
), stored AS (
  INSERT INTO {schema}.limits (key, override) VALUES (%(key)s::text, %(cap)s::int)
  ON CONFLICT (key) DO UPDATE SET override = excluded.override
)
SELECT %(key)s::text AS key WHERE NOT EXISTS (SELECT FROM known)
