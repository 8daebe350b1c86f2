-- Show the last fires of a schedule, the newest first.
-- Locks: none. Index: schedule_fires_history.
SELECT f.fire_at, f.job_id, f.fired_at, f.manual FROM {schema}.schedule_fires AS f WHERE f.schedule = %(name)s
ORDER BY f.fired_at DESC, f.fire_at DESC, f.job_id DESC LIMIT %(limit)s::int
