-- Insert jobs that have a gate, which makes their queue gated: with the first of them, and so in the same transaction. A
-- queue that is gated already is looked at, but not locked: ON CONFLICT alone would make all inserts wait for each other.
-- Locks: the new rows, and the row of a queue that becomes gated. Index: primary keys.
WITH gated AS (
  INSERT INTO {schema}.queues (name, gated)
  SELECT %(queue)s, true
  WHERE NOT EXISTS (SELECT FROM {schema}.queues AS q WHERE q.name = %(queue)s AND q.gated)
  ON CONFLICT (name) DO UPDATE SET gated = true
), inserted AS (
  {insert_jobs}
)
SELECT 1 WHERE false
