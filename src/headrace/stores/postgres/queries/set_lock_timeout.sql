-- Bound the waits for locks in this transaction only: behind a pooler the session belongs to everyone.
-- Locks: none. Index: none.
SELECT set_config('lock_timeout', %(timeout)s, true)
