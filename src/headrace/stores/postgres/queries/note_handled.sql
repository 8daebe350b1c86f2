-- Note that a consumer has handled a message; no row: it was noted before. Another open transaction that notes the same
-- is waited for.
-- Locks: the new row. Index: primary key.
INSERT INTO {schema}.event_inbox (handled_at, consumer, message_id)
VALUES (coalesce(%(now)s::timestamptz, now()), %(consumer)s::text, %(message_id)s::text)
ON CONFLICT (consumer, message_id) DO NOTHING
RETURNING message_id
