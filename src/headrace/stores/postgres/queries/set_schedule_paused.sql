-- Pause a schedule, or let a paused one go on from now; no row: there is none.
-- Locks: the schedule's row. Index: primary key.
UPDATE {schema}.schedules AS s SET paused = %(paused)s::boolean,
  after_at = CASE WHEN s.paused AND NOT %(paused)s::boolean THEN t.now ELSE s.after_at END,
  next_at = CASE WHEN s.paused AND NOT %(paused)s::boolean THEN NULL ELSE s.next_at END
FROM (SELECT coalesce(%(now)s::timestamptz, now()) AS now) AS t
WHERE s.name = %(name)s
RETURNING s.name
