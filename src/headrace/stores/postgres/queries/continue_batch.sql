-- Open an abandoned batch again.
-- Locks: the batch row. Index: primary key.
UPDATE {schema}.batches SET state = 'open', opened_at = coalesce(%(now)s::timestamptz, now())
WHERE id = %(batch_id)s AND state = 'abandoned'
