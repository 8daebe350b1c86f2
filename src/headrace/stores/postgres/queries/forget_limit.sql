-- Remove the cap, the rate and the breaker of a name, of these kinds; returns the kinds that were there.
-- Locks: the rows, cap before rate before breaker as admission does: each waits for the answer of the one before.
-- Index: primary keys.
WITH cap AS (
  DELETE FROM {schema}.limits WHERE key = %(name)s AND 'cap' = ANY(%(kinds)s::text[])
  RETURNING CASE WHEN coalesce(override, cap) IS NOT NULL THEN 'cap' END AS kind
), rate AS (
  DELETE FROM {schema}.rates
  WHERE name = %(name)s AND 'rate' = ANY(%(kinds)s::text[]) AND (SELECT count(*) FROM cap) >= 0
  RETURNING 'rate' AS kind
), breaker AS (
  DELETE FROM {schema}.breakers
  WHERE key = %(name)s AND 'breaker' = ANY(%(kinds)s::text[]) AND (SELECT count(*) FROM rate) >= 0
  RETURNING 'breaker' AS kind
)
SELECT kind FROM cap WHERE kind IS NOT NULL UNION ALL SELECT kind FROM rate UNION ALL SELECT kind FROM breaker
