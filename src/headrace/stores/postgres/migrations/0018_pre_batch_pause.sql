-- Pausing a batch. The code of the release before holds nothing: the sweep of the leader does it then. Locks batches, then
-- jobs, for an instant: in this order statements of ours lock them too.
ALTER TABLE {schema}.batches ADD COLUMN paused_at timestamptz, ADD COLUMN paused_reason text;
CREATE INDEX batches_paused ON {schema}.batches (id) WHERE paused_at IS NOT NULL;
DROP INDEX {schema}.jobs_parked;
ALTER INDEX {schema}.jobs_parked_next RENAME TO jobs_parked;

-- Store a signal, once per key, and make the jobs ready that are parked on it, behind those that wait already; those of a
-- paused batch are held. They are looked for by a statement of their own, which sees what parked while the one before
-- waited for the key. Returns the queues of the jobs; NULL: the key had a signal.
CREATE OR REPLACE FUNCTION {schema}.send_signal(signal text, content json, head_starts interval[], clock timestamptz)
RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
  gained text[];
BEGIN
  clock := coalesce(clock, now());
  INSERT INTO {schema}.signals AS s (key, payload, sent_at, created_at) VALUES (signal, content, clock, clock)
  ON CONFLICT (key) DO UPDATE SET payload = excluded.payload, sent_at = excluded.sent_at WHERE s.payload IS NULL;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  WITH woken AS (
    UPDATE {schema}.jobs AS j
    SET (state, parked_on) = (SELECT CASE WHEN p.id IS NULL THEN 'ready' ELSE 'parked' END, chr(31) || p.id
        FROM (SELECT) AS one LEFT JOIN {schema}.batches AS p ON p.id = j.batch_id AND p.paused_at IS NOT NULL),
      run_at = NULL,
      sort_at = CASE WHEN j.lane ~ '"key_limit":1[,}]' THEN j.sort_at ELSE clock - head_starts[j.priority + 1] END
    WHERE j.id = ANY(ARRAY(
      SELECT p.id FROM {schema}.jobs AS p WHERE p.state = 'parked' AND p.parked_on = signal
      ORDER BY p.id FOR UPDATE))
    RETURNING j.queue
  )
  SELECT coalesce(array_agg(DISTINCT w.queue), '{}') INTO gained FROM woken AS w;
  RETURN gained;
END
$$;
