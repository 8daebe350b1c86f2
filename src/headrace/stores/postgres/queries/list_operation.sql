-- Actions of the audit of one operation, whoever did it, behind a place or from the newest on.
-- Locks: none. Index: actions_operation.
SELECT a.* FROM {schema}.actions AS a
WHERE a.operation = %(operation)s
  AND (a.done_at, a.id) < (coalesce(%(before)s::timestamptz, 'infinity'), coalesce(%(before_id)s::uuid,
    'ffffffff-ffff-ffff-ffff-ffffffffffff'))
ORDER BY a.done_at DESC, a.id DESC LIMIT %(limit)s::int
