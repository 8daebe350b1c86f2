-- Remove notes of messages that were handled longer ago, oldest first. They are looked for once, whatever the plan: a look
-- that is repeated for each row would pass over those that are locked or gone, and take others beyond the limit.
-- Locks: the removed rows, skipping locked ones. Index: event_inbox_age, primary key.
WITH old AS MATERIALIZED (
  SELECT o.consumer, o.message_id FROM {schema}.event_inbox AS o
  WHERE o.handled_at <= coalesce(%(now)s::timestamptz, now()) - %(retention)s::interval
  ORDER BY o.handled_at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED
)
DELETE FROM {schema}.event_inbox AS i USING old
WHERE i.consumer = old.consumer AND i.message_id = old.message_id
RETURNING i.message_id
