-- Insert one job: what insert_jobs does to many, for three quarters of its cost to a job that comes alone. With a
-- channel it commits and then tells listeners, in a transaction of its own as `notify` does, without the way to the
-- client and back; so only where no transaction is open.
-- Locks: the new row. Index: primary key.
CALL {schema}.insert_job(%(id)s::uuid, %(run_at)s::timestamptz, %(head_start)s::interval, %(queue)s::text,
  %(task)s::text, %(priority)s::smallint, %(max_attempts)s::smallint, %(timeout)s::interval, %(at_most_once)s::boolean,
  %(limit_key)s::text, %(args)s::text::json, coalesce(%(now)s::timestamptz, now()), %(channel)s::text,
  %(payload)s::text)
