-- Override a cap, or return to the declared one (NULL); where none is declared, nothing stays. No running job is stopped.
-- Locks: the row. Index: primary key.
WITH stored AS (
  INSERT INTO {schema}.limits (key, override) SELECT %(key)s::text, %(cap)s::int WHERE %(cap)s::int IS NOT NULL
  ON CONFLICT (key) DO UPDATE SET override = excluded.override
), lifted AS (
  UPDATE {schema}.limits AS l SET override = NULL
  WHERE l.key = %(key)s::text AND %(cap)s::int IS NULL AND l.cap IS NOT NULL
)
DELETE FROM {schema}.limits AS l WHERE l.key = %(key)s::text AND %(cap)s::int IS NULL AND l.cap IS NULL
