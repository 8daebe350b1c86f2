-- Move a schedule on, if it still is as its mover saw it and the last time it fires for has come.
-- Locks: the schedule's row. Index: primary key.
UPDATE {schema}.schedules SET after_at = %(after_at)s::timestamptz, next_at = %(next_at)s::timestamptz
WHERE name = %(name)s AND rule = %(rule)s AND after_at = %(seen_at)s::timestamptz AND NOT paused
  AND (%(last_at)s::timestamptz IS NULL OR %(last_at)s::timestamptz <= coalesce(%(now)s::timestamptz, now()))
RETURNING name
