-- Remove parked rows; their events stay in the log. Run after lock_parked.
-- Locks: the rows, held already. Index: primary key.
DELETE FROM {schema}.event_outbox WHERE position = ANY(%(positions)s::bigint[]) AND state = 'parked'
RETURNING position
