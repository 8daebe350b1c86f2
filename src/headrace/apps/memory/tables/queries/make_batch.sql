-- Join flushes into a batch, in the order given: those that wait, were never begun, have no summary and are in none.
-- Returns nothing when there is none left.
-- Locks: the flushes by id. Index: primary key.
WITH free AS MATERIALIZED (
  SELECT id FROM {schema}.flushes
  WHERE id = ANY (%(flush_ids)s::uuid[]) AND state = 'waiting' AND fence = 0 AND batch_id IS NULL AND summary IS NULL
  ORDER BY id FOR UPDATE
), joined AS (
  UPDATE {schema}.flushes AS f SET batch_id = %(batch_id)s::uuid FROM free WHERE f.id = free.id
)
INSERT INTO {schema}.batches (id, flush_ids)
SELECT %(batch_id)s::uuid, array_agg(g.id ORDER BY g.place)
FROM unnest(%(flush_ids)s::uuid[]) WITH ORDINALITY AS g (id, place) JOIN free ON free.id = g.id
HAVING count(*) > 0
RETURNING id
