-- How many ready jobs of a queue could start now if there were slots, counted up to so many for each worker that serves
-- it; how many the caps, and how many the units of rates let start (NULL: as many as like); and what holds other lanes,
-- the first by kind and name. By the predicate of admission, on a thousand lanes more than jobs are counted; a lane
-- counts if its first job may start.
-- Locks: none. Index: jobs_claim and jobs_waiting, jobs_started and jobs_keeping to count what runs, primary keys.
WITH t AS MATERIALIZED (
  SELECT n.now, coalesce(q.gated, false) AS gated, coalesce(q.paused, false) AS paused,
    ARRAY(SELECT b.id FROM {schema}.batches AS b WHERE b.state = 'cancelling') AS cancelling,
    (SELECT count(*) FROM {schema}.sessions AS s CROSS JOIN json_object_keys(s.queues) AS k (name)
      WHERE s.expires_at > n.now AND k.name = %(queue)s) AS workers
  FROM (SELECT coalesce(%(now)s::timestamptz, now()) AS now) AS n
    LEFT JOIN {schema}.queues AS q ON q.name = %(queue)s
), waiting AS MATERIALIZED (
  SELECT w.* FROM t CROSS JOIN LATERAL {schema}.waiting_lanes(%(queue)s, t.cancelling) AS w
  WHERE t.gated AND NOT t.paused
  LIMIT (SELECT 1000 + greatest(t.workers, 1) * %(at_most)s::int FROM t)
), needs AS MATERIALIZED (
  SELECT r.rest, n.kind, n.name, n.units FROM (SELECT DISTINCT w.rest FROM waiting AS w) AS r
    CROSS JOIN LATERAL {schema}.gate_needs(%(queue)s, r.rest::jsonb) AS n
), stands AS MATERIALIZED (
  SELECT s.* FROM t CROSS JOIN LATERAL {schema}.gate_stands(
    ARRAY(SELECT d.kind FROM (SELECT DISTINCT n.kind, n.name FROM needs AS n) AS d ORDER BY d.kind, d.name),
    ARRAY(SELECT d.name FROM (SELECT DISTINCT n.kind, n.name FROM needs AS n) AS d ORDER BY d.kind, d.name),
    t.now, NULL, %(levels)s::text::jsonb) AS s
), keyed AS MATERIALIZED (
  SELECT w.lane, w.rest, w.cost, w.key, coalesce((c.caps ->> w.key)::int, w.key_limit) - coalesce(h.used, 0) AS key_room
  FROM waiting AS w CROSS JOIN (SELECT {schema}.key_caps(%(queue)s) AS caps) AS c
    LEFT JOIN {schema}.held_keys(%(queue)s) AS h ON h.key = w.key
), held AS MATERIALIZED (
  SELECT k.lane, s.kind, s.name FROM t CROSS JOIN keyed AS k JOIN needs AS n ON n.rest = k.rest
    JOIN stands AS s ON s.kind = n.kind AND s.name = n.name
  WHERE {schema}.passes_at(coalesce(n.units, k.cost), s.room, s.burst, s.per_second, s.again_at, t.now) > '-infinity'
  UNION ALL
  SELECT k.lane, 'running', k.key FROM keyed AS k WHERE k.key IS NOT NULL AND k.key_room < 1
), opened AS MATERIALIZED (
  SELECT k.lane,
    least(k.key_room, (SELECT min(s.room) FROM needs AS n JOIN stands AS s ON s.kind = n.kind AND s.name = n.name
      WHERE n.rest = k.rest AND n.kind = 'breaker'), 2147483647)::int AS most,
    (SELECT min(s.room) FROM needs AS n JOIN stands AS s ON s.kind = n.kind AND s.name = n.name
      WHERE n.rest = k.rest AND n.kind = 'running') AS room,
    (SELECT greatest(1, least(min(floor(s.room / coalesce(n.units, k.cost) * (1 + 1e-9))), 2147483647))::int
      FROM needs AS n JOIN stands AS s ON s.kind = n.kind AND s.name = n.name
      WHERE n.rest = k.rest AND n.kind = 'rate' AND s.burst < 'Infinity' HAVING count(*) > 0) AS units
  FROM keyed AS k WHERE k.lane NOT IN (SELECT h.lane FROM held AS h)
)
SELECT t.workers, t.paused,
  (SELECT count(*) FROM (
    (SELECT FROM opened AS o CROSS JOIN LATERAL (
      SELECT FROM {schema}.jobs AS j
      WHERE j.queue = %(queue)s AND j.state = 'ready' AND j.lane = o.lane
        AND (j.batch_id IS NULL OR j.batch_id <> ALL(t.cancelling))
      ORDER BY j.sort_at, j.id LIMIT least(o.most, greatest(t.workers, 1) * %(at_most)s::int)) AS c
    WHERE o.lane <> '')
    UNION ALL
    (SELECT FROM {schema}.jobs AS j
    WHERE j.queue = %(queue)s AND j.state = 'ready' AND j.lane IS NULL AND NOT t.paused
      AND (NOT t.gated OR EXISTS (SELECT FROM opened AS o WHERE o.lane = ''))
      AND (j.batch_id IS NULL OR j.batch_id <> ALL(t.cancelling))
    ORDER BY j.sort_at, j.id LIMIT greatest(t.workers, 1) * %(at_most)s::int)
    LIMIT greatest(t.workers, 1) * %(at_most)s::int) AS c) AS jobs,
  (SELECT CASE WHEN count(*) = count(o.room) THEN max(o.room) END FROM opened AS o) AS room,
  (SELECT CASE WHEN count(*) = count(o.units) THEN max(o.units) END FROM opened AS o) AS units,
  (SELECT CASE h.kind WHEN 'running' THEN 'cap' ELSE h.kind END || ' ' || h.name FROM held AS h
  ORDER BY array_position(ARRAY['breaker', 'rate', 'running'], h.kind), h.name COLLATE "C" LIMIT 1) AS held_by
FROM t
