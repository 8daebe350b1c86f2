-- Let waiting rows wait behind a parked one of their topic and key, and return them; the others' parked row is gone.
-- The parked row is held while that is done: who releases it waits, and sees then what is held behind it.
-- Locks: the parked rows of these keys, shared, by topic, key and position; then the rows by position.
-- Index: primary key, event_outbox_parked: an ORDER BY beside it would make the planner walk the whole primary key.
WITH asked AS MATERIALIZED (
  SELECT o.position, o.topic, o.key FROM unnest(%(positions)s::bigint[]) AS a (position)
    JOIN {schema}.event_outbox AS o ON o.position = a.position
  WHERE o.state IS NOT DISTINCT FROM 'waiting'
), keys AS MATERIALIZED (
  SELECT DISTINCT topic, key FROM asked ORDER BY topic, key
), parked AS MATERIALIZED (
  SELECT p.topic, p.key FROM keys AS k JOIN {schema}.event_outbox AS p
    ON p.state = 'parked' AND p.topic = k.topic AND md5(p.key) = md5(k.key) AND p.key = k.key
  FOR SHARE OF p
), behind AS MATERIALIZED (
  SELECT a.position FROM asked AS a WHERE ((a.topic, a.key) IN (SELECT topic, key FROM parked)) IS TRUE
  ORDER BY a.position
)
UPDATE {schema}.event_outbox AS o SET state = 'held' FROM behind AS b
WHERE o.position = b.position AND o.state IS NOT DISTINCT FROM 'waiting'
RETURNING o.position
