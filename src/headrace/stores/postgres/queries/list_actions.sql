-- Actions of the audit behind a place, or from the newest on.
-- Locks: none. Index: actions_newest.
SELECT a.* FROM {schema}.actions AS a
WHERE (a.done_at, a.id) < (coalesce(%(before)s::timestamptz, 'infinity'), coalesce(%(before_id)s::uuid,
  'ffffffff-ffff-ffff-ffff-ffffffffffff'))
ORDER BY a.done_at DESC, a.id DESC LIMIT %(limit)s::int
