-- Forget the oldest fires of a schedule, beyond those that are kept.
-- Locks: the rows that go. Index: schedule_fires_history, primary key.
DELETE FROM {schema}.schedule_fires WHERE job_id = ANY(ARRAY(
  SELECT f.job_id FROM {schema}.schedule_fires AS f WHERE f.schedule = %(name)s
  ORDER BY f.fired_at DESC, f.fire_at DESC, f.job_id DESC OFFSET %(kept)s::int))
