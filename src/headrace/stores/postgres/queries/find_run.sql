-- The run that was started under a key.
-- Locks: none. Index: idempotency_keys_pkey, runs_pkey.
SELECT id, workflow, version, snapshot, state, level, reason, input, context, output, error, key, rerun_of, rerun_from,
created_at, finished_at
FROM {schema}.runs
WHERE id = (SELECT k.id FROM {schema}.idempotency_keys AS k WHERE k.scope = 'run:' || %(workflow)s::text AND k.key = %(key)s::text)
