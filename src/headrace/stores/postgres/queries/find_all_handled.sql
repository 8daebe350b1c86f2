-- Which of these messages a consumer has handled.
-- Locks: none. Index: primary key.
SELECT i.message_id
FROM unnest(%(message_ids)s::text[]) AS g (message_id)
JOIN {schema}.event_inbox AS i ON i.consumer = %(consumer)s::text AND i.message_id = g.message_id
