-- Keep parts of streamed answers under the keys of their calls, each number once; nothing of calls that are not live.
-- Locks: the calls by id, so that none can end meanwhile, then the new rows by key and number. Index: primary keys.
WITH live AS MATERIALIZED (
  SELECT c.id, c.key, c.state FROM {schema}.calls AS c
  WHERE c.id = ANY(%(calls)s::uuid[]) AND c.state IN ('prepared', 'sent', 'received') ORDER BY c.id FOR NO KEY UPDATE
), received AS (
  UPDATE {schema}.calls AS c SET state = 'received' FROM live AS l WHERE c.id = l.id AND l.state <> 'received'
)
INSERT INTO {schema}.call_items (number, key, item, created_at)
SELECT p.number, l.key, p.item, coalesce(%(now)s::timestamptz, now())
FROM live AS l
  JOIN unnest(%(calls)s::uuid[], %(numbers)s::int[], %(items)s::text[]) AS p (call, number, item) ON p.call = l.id
ORDER BY l.key, p.number
ON CONFLICT (key, number) DO NOTHING
