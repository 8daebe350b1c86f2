-- Start cancelling a batch that is not closed; what was appended so far becomes its total; a pause ends. Claims stop
-- at once.
-- Locks: the batch row, which the caller holds by lock_batch. Index: primary key.
UPDATE {schema}.batches SET state = 'cancelling', total = coalesce(total, %(appended)s::int),
  paused_at = NULL, paused_reason = NULL
WHERE id = %(batch_id)s AND state <> 'closed'
