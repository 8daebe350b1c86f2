-- Read the events of flushes, whose ids they have, oldest first.
-- Locks: none. Index: primary key.
SELECT id, user_id, event_tip, event_tags::text AS event_tags, profile_delta::text AS profile_delta, created_at
FROM {schema}.user_events WHERE id = ANY (%(ids)s::uuid[]) ORDER BY created_at, id
