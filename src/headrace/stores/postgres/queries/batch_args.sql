-- The arguments of each item of a batch; of one that was retried those of its newest try, whatever the clock said.
-- Locks: none. Index: jobs_batch, finished_jobs_items.
WITH tries AS MATERIALIZED (
  SELECT id, retry_of, ordinal, args FROM {schema}.jobs WHERE batch_id = %(batch_id)s
  UNION ALL
  SELECT id, retry_of, ordinal, args FROM {schema}.finished_jobs WHERE batch_id = %(batch_id)s
)
SELECT t.ordinal, t.args FROM tries AS t WHERE NOT EXISTS (SELECT FROM tries AS n WHERE n.retry_of = t.id)
