CREATE PROCEDURE {schema}.insert_job(job_id uuid, due timestamptz, head_start interval, job_queue text, job_task text,
  job_priority smallint, job_max_attempts smallint, job_timeout interval, job_at_most_once boolean,
  job_limit_key text, job_args json, clock timestamptz, channel text, payload text)
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO {schema}.jobs (id, state, sort_at, run_at, created_at, queue, task, priority, max_attempts, timeout,
    at_most_once, limit_key, args)
  VALUES (job_id, CASE WHEN due > clock THEN 'scheduled' ELSE 'ready' END, greatest(due, clock) - head_start, due,
    clock, job_queue, job_task, job_priority, job_max_attempts, job_timeout, job_at_most_once, job_limit_key, job_args)
  ON CONFLICT (id) DO NOTHING;
  IF channel IS NOT NULL THEN
    COMMIT;
    SET LOCAL lock_timeout = '20ms';
    PERFORM pg_notify(channel, payload);
  END IF;
END
$$;
