-- List events of a user, newest first; before an instant, and with a tag, where those are given.
-- Locks: none. Index: user_events_user.
SELECT id, user_id, event_tip, event_tags::text AS event_tags, profile_delta::text AS profile_delta, created_at
FROM {schema}.user_events
WHERE user_id = %(user_id)s::text AND created_at < coalesce(%(before)s::timestamptz, 'infinity')
  AND event_tags @> coalesce(%(tags)s::text::jsonb, '[]')
ORDER BY created_at DESC, id DESC LIMIT %(limit)s::int
