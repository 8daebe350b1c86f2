-- Note that a consumer has handled messages; a row for each that had not been noted before. Another open transaction
-- that notes one of them is waited for; two that note the same ones do so in one order, and cannot deadlock.
-- Locks: the new rows. Index: primary key.
INSERT INTO {schema}.event_inbox (handled_at, consumer, message_id)
SELECT coalesce(%(now)s::timestamptz, now()), %(consumer)s::text, g.message_id
FROM unnest(%(message_ids)s::text[]) AS g (message_id)
ON CONFLICT (consumer, message_id) DO NOTHING
RETURNING message_id
