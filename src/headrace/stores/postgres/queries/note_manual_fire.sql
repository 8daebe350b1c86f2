-- Note a run that somebody asked for; no row: there is no such schedule. One that was noted before stays as it is.
-- Locks: the new row; the schedule's row, shared. Index: primary keys.
WITH known AS (SELECT s.name FROM {schema}.schedules AS s WHERE s.name = %(name)s FOR SHARE), noted AS (
  INSERT INTO {schema}.schedule_fires (job_id, fire_at, fired_at, manual, schedule)
  SELECT %(job_id)s::uuid, %(fire_at)s::timestamptz, coalesce(%(now)s::timestamptz, now()), true, k.name
  FROM known AS k
  ON CONFLICT (job_id) DO NOTHING
)
SELECT name FROM known
