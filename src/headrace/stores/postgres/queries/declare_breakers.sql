-- Store the rules of circuit breakers; where they stand is kept.
-- Locks: the rows, in the order given (the caller sorts by key, as admission does). Index: primary key.
INSERT INTO {schema}.breakers AS b (key, max_failures, error_rate, min_calls, span, cooldown, on_open)
SELECT d.key, d.max_failures, d.error_rate, d.min_calls, d.span, d.cooldown, d.on_open
FROM unnest(%(keys)s::text[], %(max_failures)s::int[], %(error_rates)s::float8[], %(min_calls)s::int[],
    %(spans)s::interval[], %(cooldowns)s::interval[], %(on_opens)s::text[])
  WITH ORDINALITY AS d (key, max_failures, error_rate, min_calls, span, cooldown, on_open, place)
ORDER BY d.place
ON CONFLICT (key) DO UPDATE
SET max_failures = excluded.max_failures, error_rate = excluded.error_rate, min_calls = excluded.min_calls,
  span = excluded.span, cooldown = excluded.cooldown, on_open = excluded.on_open
WHERE (b.max_failures, b.error_rate, b.min_calls, b.span, b.cooldown, b.on_open) IS DISTINCT FROM
  (excluded.max_failures, excluded.error_rate, excluded.min_calls, excluded.span, excluded.cooldown, excluded.on_open)
