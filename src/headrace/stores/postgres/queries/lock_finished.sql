-- Hold a final job, so that one retry of it passes at a time. NOWAIT would refuse what waiting answers.
-- Locks: the history row. Index: primary key.
SELECT id, state, batch_id, run_id, node FROM {schema}.finished_jobs WHERE id = %(job_id)s FOR UPDATE
