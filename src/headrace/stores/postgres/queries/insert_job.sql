-- Insert one job: what insert_jobs does to many, for less to a job that comes alone. With a channel it commits and then
-- tells listeners, in a transaction of its own as `notify` does, without the way to the client and back; so only where
-- no transaction is open. Where that fails (the notification queue is locked or full) the job is stored all the same.
-- Locks: the new row; behind the commit the notification queue, for at most 20 ms. Index: primary key.
CALL {schema}.insert_job(%(id)s::uuid, %(run_at)s::timestamptz, %(head_start)s::interval, %(queue)s::text,
  %(task)s::text, %(priority)s::smallint, %(max_attempts)s::smallint, %(timeout)s::interval, %(at_most_once)s::boolean,
  NULL::text, %(lane)s::text, %(cost)s::double precision, %(args)s::text::json,
  coalesce(%(now)s::timestamptz, now()), %(channel)s::text, %(payload)s::text)
