-- The arguments of each item of a batch; an item that was retried comes once per try, the newest last.
-- Locks: none. Index: jobs_batch, finished_jobs_items.
SELECT ordinal, args, created_at FROM {schema}.jobs WHERE batch_id = %(batch_id)s
UNION ALL
SELECT ordinal, args, created_at FROM {schema}.finished_jobs WHERE batch_id = %(batch_id)s
ORDER BY created_at
