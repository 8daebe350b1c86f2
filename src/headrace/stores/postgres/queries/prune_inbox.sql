-- Remove notes of messages that were handled longer ago, oldest first.
-- Locks: the removed rows, skipping locked ones. Index: event_inbox_age, primary key.
DELETE FROM {schema}.event_inbox AS i USING (
  SELECT o.consumer, o.message_id FROM {schema}.event_inbox AS o
  WHERE o.handled_at <= coalesce(%(now)s::timestamptz, now()) - %(retention)s::interval
  ORDER BY o.handled_at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED) AS old
WHERE i.consumer = old.consumer AND i.message_id = old.message_id
RETURNING i.message_id
