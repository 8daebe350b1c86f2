-- Put by rows that no bus will ever take, each with the reason; only what waits.
-- Locks: the rows, in the order given (the caller sorts). Index: primary key.
UPDATE {schema}.event_outbox AS o
SET state = 'parked', error = p.error, parked_at = coalesce(%(now)s::timestamptz, now())
FROM unnest(%(positions)s::bigint[], %(errors)s::text[]) AS p (position, error)
WHERE o.position = p.position AND o.state IS NOT DISTINCT FROM 'waiting'
