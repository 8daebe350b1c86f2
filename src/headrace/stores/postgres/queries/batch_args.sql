-- The arguments of each item of a batch; an item that was retried comes once per try, with the same arguments.
-- Locks: none. Index: jobs_batch, finished_jobs_items.
SELECT ordinal, args FROM {schema}.jobs WHERE batch_id = %(batch_id)s
UNION ALL
SELECT ordinal, args FROM {schema}.finished_jobs WHERE batch_id = %(batch_id)s
