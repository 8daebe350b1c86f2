-- Give a transaction that is the caller's its own bound on waits for locks back.
-- Locks: none. Index: none.
SELECT set_config('lock_timeout', %(timeout)s, true)
