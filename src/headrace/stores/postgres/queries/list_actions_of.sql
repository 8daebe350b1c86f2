-- Actions of the audit that somebody did, all or those of one operation, behind a place or from the newest on.
-- Locks: none. Index: actions_who.
SELECT a.* FROM {schema}.actions AS a
WHERE a.who = %(who)s AND (%(operation)s::text IS NULL OR a.operation = %(operation)s::text)
  AND (a.done_at, a.id) < (coalesce(%(before)s::timestamptz, 'infinity'), coalesce(%(before_id)s::uuid,
    'ffffffff-ffff-ffff-ffff-ffffffffffff'))
ORDER BY a.done_at DESC, a.id DESC LIMIT %(limit)s::int
