-- Let parked rows wait again at their place; run after lock_parked.
-- Locks: the rows, held already. Index: primary key.
UPDATE {schema}.event_outbox SET state = 'waiting', error = NULL, parked_at = NULL
WHERE position = ANY(%(positions)s::bigint[]) AND state = 'parked'
RETURNING position
