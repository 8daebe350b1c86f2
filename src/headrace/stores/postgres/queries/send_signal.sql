-- Store a signal, once per key, and wake who is parked on it; returns the queues that gained a job, or NULL where the key
-- had a signal: see the function in schema.sql. A key that a job which parks is making is waited for.
-- Locks: the row of the key, to the end of the transaction, then the woken jobs, by id.
-- Index: primary keys, jobs_parked.
SELECT {schema}.send_signal(%(key)s::text, %(payload)s::text::json, %(head_starts)s::interval[],
  %(now)s::timestamptz) AS queues
