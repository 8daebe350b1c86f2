-- Ask the worker of a running job to stop it; it hears of it with its next heartbeat.
-- Locks: the job row. Index: primary key.
UPDATE {schema}.jobs SET cancel_requested = true WHERE id = %(job_id)s AND state = 'running' RETURNING id
