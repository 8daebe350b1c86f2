-- Name users whose buffer got nothing for so long: by the newest row of each, those that wait longest first.
-- Locks: none. Index: buffer_zone_waiting, and buffer_zone_user to see that none is newer.
SELECT z.user_id FROM {schema}.buffer_zone AS z
WHERE z.flush_id IS NULL AND z.updated_at <= now() - %(idle)s::interval AND NOT EXISTS (
  SELECT FROM {schema}.buffer_zone AS newer
  WHERE newer.user_id = z.user_id AND newer.flush_id IS NULL AND (newer.updated_at, newer.id) > (z.updated_at, z.id)
)
ORDER BY z.updated_at, z.id LIMIT %(limit)s::int
