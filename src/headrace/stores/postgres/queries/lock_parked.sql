-- Hold all parked rows of the topics and keys that parked rows have, and return them.
-- All of them, so that of two who release rows of one key the later one sees that none is parked any more.
-- Locks: the parked rows of these keys, by topic, key and position. Index: primary key, event_outbox_parked.
WITH keys AS MATERIALIZED (
  SELECT DISTINCT o.topic, o.key FROM unnest(%(positions)s::bigint[]) AS a (position)
    JOIN {schema}.event_outbox AS o ON o.position = a.position
  WHERE o.state IS NOT DISTINCT FROM 'parked' ORDER BY o.topic, o.key
)
SELECT p.position, p.topic, p.key FROM keys AS k JOIN {schema}.event_outbox AS p
  ON p.state = 'parked' AND p.topic = k.topic AND md5(p.key) = md5(k.key) AND p.key = k.key
FOR UPDATE OF p
