-- Note that an app still asks for schedules. One note in half a minute is enough, of whichever worker.
-- Locks: the schedules' rows that are written, skipping locked ones. Index: primary key.
UPDATE {schema}.schedules AS s SET declared_at = t.now
FROM (SELECT coalesce(%(now)s::timestamptz, now()) AS now) AS t
WHERE s.name = ANY(ARRAY(
  SELECT d.name FROM {schema}.schedules AS d, (SELECT coalesce(%(now)s::timestamptz, now()) AS now) AS u
  WHERE d.name = ANY(%(names)s::text[]) AND d.declared_at NOT BETWEEN u.now - interval '30 seconds' AND u.now
  FOR UPDATE OF d SKIP LOCKED))
