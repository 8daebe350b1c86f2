-- End a flush as failed, and its rows; return it if it was not ended before, nor is another's than the fence says.
-- Locks: the flush, then its rows. Index: primary key, buffer_zone_user.
WITH failed AS (
  UPDATE {schema}.flushes SET state = 'failed', ended_at = now(), lease_until = NULL, error = %(error)s::text
  WHERE id = %(flush_id)s::uuid AND state IN ('waiting', 'processing') AND fence = coalesce(%(fence)s::int, fence)
  RETURNING id, user_id
), rows AS (
  UPDATE {schema}.buffer_zone AS z SET status = 'failed', updated_at = now()
  FROM failed WHERE z.user_id = failed.user_id AND z.flush_id = failed.id AND z.status <> 'done'
)
SELECT id FROM failed
