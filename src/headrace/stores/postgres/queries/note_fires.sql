-- Note the fires of a schedule, each fire time once; return the jobs that are to be inserted for those that are new.
-- Locks: the new rows. Index: schedule_fires_once.
INSERT INTO {schema}.schedule_fires (job_id, fire_at, fired_at, manual, schedule)
SELECT f.job_id, f.fire_at, coalesce(%(now)s::timestamptz, now()), false, %(name)s
FROM unnest(%(job_ids)s::uuid[], %(fire_ats)s::timestamptz[]) AS f (job_id, fire_at)
ON CONFLICT (schedule, fire_at) WHERE NOT manual DO NOTHING
RETURNING job_id
