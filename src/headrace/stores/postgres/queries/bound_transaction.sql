-- Bound a transaction of ours where the session belongs to everyone (behind a pooler): waits for locks, idleness, and
-- no just-in-time compilation, which takes seconds where the server thinks a plan expensive.
-- Locks: none. Index: none.
SELECT set_config('lock_timeout', %(lock_timeout)s, true), set_config('jit', 'off', true),
  set_config('idle_in_transaction_session_timeout', %(idle_timeout)s, true)
