-- Say of a flush that waits whether it is to be summarised with others: open to it, in a batch whose call is not over,
-- or ready to be worked on as it is. Nothing for one that does not wait.
-- Locks: none. Index: primary key.
SELECT CASE
  WHEN summary IS NOT NULL OR alone OR fence > 0 OR reason = 'explicit' THEN 'ready'
  WHEN batch_id IS NULL THEN 'open'
  ELSE 'batched'
END AS sharing
FROM {schema}.flushes WHERE id = %(flush_id)s::uuid AND state = 'waiting'
