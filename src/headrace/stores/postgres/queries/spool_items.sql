-- Keep parts of a streamed answer under the key of its call, each number once; nothing of a call that is not live.
-- Locks: the call, so that it cannot end meanwhile, then the new rows. Index: primary keys.
WITH live AS MATERIALIZED (
  SELECT c.id, c.key, c.state FROM {schema}.calls AS c
  WHERE c.id = %(call)s AND c.state IN ('prepared', 'sent', 'received') FOR NO KEY UPDATE
), received AS (
  UPDATE {schema}.calls AS c SET state = 'received' FROM live AS l WHERE c.id = l.id AND l.state <> 'received'
)
INSERT INTO {schema}.call_items (number, key, item, created_at)
SELECT %(start)s::int + i.place - 1, l.key, i.item, coalesce(%(now)s::timestamptz, now())
FROM live AS l, unnest(%(items)s::text[]) WITH ORDINALITY AS i (item, place)
ON CONFLICT (key, number) DO NOTHING
