-- Remove a schedule and its fires; no row: there is none. Its jobs stay.
-- Locks: the schedule's row, then those of its fires. Index: primary key, schedule_fires_history.
WITH gone AS (DELETE FROM {schema}.schedules WHERE name = %(name)s RETURNING name), fires AS (
  DELETE FROM {schema}.schedule_fires AS f USING gone AS g WHERE f.schedule = g.name
)
SELECT name FROM gone
