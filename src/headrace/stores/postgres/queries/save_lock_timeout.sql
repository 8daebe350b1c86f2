-- Bound the waits for locks in a transaction that is the caller's, and return what it had set before.
-- Locks: none. Index: none.
SELECT current_setting('lock_timeout') AS before, set_config('lock_timeout', %(timeout)s, true)
