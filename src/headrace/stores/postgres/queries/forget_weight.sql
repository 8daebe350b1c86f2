-- Let a fair key have the weight of those without one; a tag that it has stays.
-- Locks: the row. Index: primary key.
WITH held AS MATERIALIZED (
  SELECT s.finish FROM {schema}.shares AS s WHERE s.queue = %(queue)s AND s.fair_key = %(fair_key)s FOR UPDATE
), gone AS (
  DELETE FROM {schema}.shares AS s USING held AS h
  WHERE s.queue = %(queue)s AND s.fair_key = %(fair_key)s AND h.finish IS NULL
)
UPDATE {schema}.shares AS s SET weight = NULL FROM held AS h
WHERE s.queue = %(queue)s AND s.fair_key = %(fair_key)s AND h.finish IS NOT NULL
