-- Take rows out of the outbox that a bus has; a parked one stays: whoever releases it lets go what it holds.
-- Locks: the rows, in the order given (the caller sorts). Index: primary key.
DELETE FROM {schema}.event_outbox AS o USING unnest(%(positions)s::bigint[]) AS p (position)
WHERE o.position = p.position AND o.state IS DISTINCT FROM 'parked'
