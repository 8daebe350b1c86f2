-- What took several statements in a transaction is one call. The code of the release before knows none of these.
-- Store a signal, once per key, and make the jobs ready that are parked on it, behind those that wait already. They are
-- looked for by a statement of their own, which sees what parked while the one before waited for the key. Returns the
-- queues that gained a job; NULL: the key had a signal.
CREATE FUNCTION {schema}.send_signal(signal text, content json, head_starts interval[], clock timestamptz)
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
    SET state = 'ready', parked_on = NULL, run_at = NULL,
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

-- End those of some held handles that wait: of result, time, cancel and token the first that gets here. Their signals go
-- by key, as whoever parks on several: then they wait for one another instead of deadlocking. The key is that of
-- `signal_key` in the model. The state is asked for so that no plan walks the index of all that wait instead of the key.
CREATE FUNCTION {schema}.end_handles(correlations text[], final text, content json, head_starts interval[],
  clock timestamptz)
RETURNS TABLE (handle {schema}.flow_resume_handles, queues text[]) LANGUAGE plpgsql AS $$
BEGIN
  clock := coalesce(clock, now());
  FOR handle IN
    WITH ended AS (
      UPDATE {schema}.flow_resume_handles AS h
      SET state = final, ended_at = clock, wake_at = CASE WHEN h.target <> '' THEN clock END, payload = content
      WHERE h.correlation_id = ANY(correlations) AND h.state IS NOT DISTINCT FROM 'waiting'
      RETURNING h.*
    )
    SELECT e.* FROM ended AS e ORDER BY e.correlation_id
  LOOP
    queues := {schema}.send_signal('resume:' || handle.correlation_id, ('{"state":"' || final || '"}')::json,
      head_starts, clock);
    RETURN NEXT;
  END LOOP;
END
$$;

-- Hold the handle of a correlation id, made here for the first event or the handle itself, whichever comes first: they
-- take turns on the row. What runs behind this sees what others kept while it waited.
CREATE FUNCTION {schema}.hold_handle(correlation text, clock timestamptz)
RETURNS {schema}.flow_resume_handles LANGUAGE plpgsql AS $$
DECLARE
  held {schema}.flow_resume_handles;
BEGIN
  INSERT INTO {schema}.flow_resume_handles AS h (correlation_id, expect_types, expect_count, arrived, created_at,
    request_types, agents, state, token_hash, target)
  VALUES (correlation, '{}', 0, 0, coalesce(clock, now()), '{}', '{}', 'early', '', '')
  ON CONFLICT (correlation_id) DO UPDATE SET correlation_id = excluded.correlation_id WHERE h.ended_at IS NULL
  RETURNING h.* INTO held;
  IF NOT FOUND THEN
    -- It has ended; it is locked all the same.
    SELECT h.* INTO held FROM {schema}.flow_resume_handles AS h WHERE h.correlation_id = correlation;
  END IF;
  RETURN held;
END
$$;

-- Whether an event is kept for a handle; the rule is that of `expects` in the model.
CREATE FUNCTION {schema}.expects(handle {schema}.flow_resume_handles, dead boolean, type text, agent text)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN dead THEN type = ANY(handle.request_types) AND (handle.agents = '{}' OR agent = ANY(handle.agents))
    ELSE type = ANY(handle.expect_types) END
$$;

-- Count what has come of what a held handle expects, each event once, and end it if that is enough. `more`: one result
-- more than before, so that all is counted anew only where dead letters are kept as well. The rule is that of
-- `count_arrived` in the model.
CREATE FUNCTION {schema}.settle_handle(correlation text, more boolean, head_starts interval[], clock timestamptz)
RETURNS TABLE (handle {schema}.flow_resume_handles, queues text[]) LANGUAGE plpgsql AS $$
BEGIN
  UPDATE {schema}.flow_resume_handles AS h SET arrived = CASE
    WHEN more AND NOT EXISTS (SELECT FROM {schema}.resume_events AS e WHERE e.correlation_id = correlation AND e.dead)
      THEN h.arrived + 1
    ELSE (SELECT count(DISTINCT e.event_id) FROM {schema}.resume_events AS e
      WHERE e.correlation_id = correlation AND NOT (e.dead AND EXISTS (
        SELECT FROM {schema}.resume_events AS c WHERE c.correlation_id = correlation AND c.cause = e.event_id))) END
  WHERE h.correlation_id = correlation
  RETURNING h.* INTO handle;
  IF handle.expect_count > 0 AND handle.arrived >= handle.expect_count THEN
    RETURN QUERY SELECT e.* FROM {schema}.end_handles(ARRAY[correlation], 'resolved', NULL, head_starts, clock) AS e;
  ELSE
    RETURN NEXT;
  END IF;
END
$$;

-- Keep an event of a correlation id, once, and return the handle as it is then; no row: only events came so far. What
-- the handle does not expect is not kept, nor is what comes after its end.
CREATE FUNCTION {schema}.note_event(correlation text, noted_id text, noted_dead boolean, noted_agent text,
  noted_type text, noted_cause text, noted_text json, head_starts interval[], clock timestamptz)
RETURNS TABLE (handle {schema}.flow_resume_handles, queues text[]) LANGUAGE plpgsql AS $$
DECLARE
  kept boolean := false;
BEGIN
  handle := {schema}.hold_handle(correlation, clock);
  IF handle.state = 'early'
      OR handle.state = 'waiting' AND {schema}.expects(handle, noted_dead, noted_type, noted_agent) THEN
    INSERT INTO {schema}.resume_events (correlation_id, event_id, dead, agent, type, cause, noted_at, noted)
    VALUES (correlation, noted_id, noted_dead, noted_agent, noted_type, noted_cause,
      coalesce(clock, clock_timestamp()), noted_text)
    ON CONFLICT (correlation_id, event_id, dead, agent) DO NOTHING;
    kept := FOUND;
  END IF;
  IF handle.state = 'early' THEN
    RETURN;
  ELSIF kept THEN
    RETURN QUERY SELECT s.* FROM {schema}.settle_handle(correlation, NOT noted_dead, head_starts, clock) AS s;
  ELSE
    RETURN NEXT;
  END IF;
END
$$;

-- Let a handle wait for what came early of what it expects, and for what will come. One that waits already, or has ended,
-- is returned as it is: whether it is the same is for the caller to see.
CREATE FUNCTION {schema}.register_handle(correlation text, wait_types text[], wait_count int, wait_requests text[],
  wait_agents text[], wait_token text, wait_target text, wait_time interval, head_starts interval[],
  clock timestamptz)
RETURNS TABLE (handle {schema}.flow_resume_handles, queues text[]) LANGUAGE plpgsql AS $$
BEGIN
  handle := {schema}.hold_handle(correlation, clock);
  IF handle.state <> 'early' THEN
    RETURN NEXT;
    RETURN;
  END IF;
  clock := coalesce(clock, now());
  UPDATE {schema}.flow_resume_handles AS h
  SET state = 'waiting', created_at = clock, expires_at = clock + wait_time, expect_types = wait_types,
    expect_count = wait_count, request_types = wait_requests, agents = wait_agents, token_hash = wait_token,
    target = wait_target
  WHERE h.correlation_id = correlation
  RETURNING h.* INTO handle;
  DELETE FROM {schema}.resume_events AS e
  WHERE e.correlation_id = correlation AND NOT {schema}.expects(handle, e.dead, e.type, e.agent);
  RETURN QUERY SELECT s.* FROM {schema}.settle_handle(correlation, false, head_starts, clock) AS s;
END
$$;

-- Put events and messages into the outbox, the events into their log as well, once per id: what is known is left alone.
CREATE FUNCTION {schema}.insert_events(ids uuid[], topics text[], keys text[], raws boolean[], types text[],
  aggregate_types text[], aggregate_ids text[], correlation_ids text[], causation_ids text[], times timestamptz[],
  schema_versions int[], retry_counts int[], payloads text[], messages bytea[], header_lists text[],
  clock timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  clock := coalesce(clock, now());
  WITH given AS MATERIALIZED (
    SELECT * FROM unnest(ids, topics, keys, raws, types, aggregate_types, aggregate_ids, correlation_ids, causation_ids,
        times, schema_versions, retry_counts, payloads, messages, header_lists) WITH ORDINALITY
      AS g (id, topic, key, raw, type, aggregate_type, aggregate_id, correlation_id, causation_id, time, schema_version,
        retries, payload, message, headers, place)
  ), fresh AS (
    INSERT INTO {schema}.events (id, occurred_at, schema_version, retries, type, aggregate_type, aggregate_id,
      correlation_id, causation_id, payload)
    SELECT g.id, coalesce(g.time, clock), g.schema_version, g.retries, g.type, g.aggregate_type, g.aggregate_id,
      g.correlation_id, g.causation_id, g.payload::json
    FROM given AS g WHERE NOT g.raw
    ORDER BY g.place
    ON CONFLICT (id) DO NOTHING
    RETURNING id
  )
  INSERT INTO {schema}.event_outbox (event_id, created_at, raw, state, topic, key, headers, message)
  SELECT g.id, clock, g.raw, 'waiting', g.topic, g.key, g.headers::json, g.message
  FROM given AS g WHERE g.raw OR (g.id IN (SELECT f.id FROM fresh AS f)) IS TRUE
  ORDER BY g.place
  ON CONFLICT (event_id) DO NOTHING;
END
$$;
