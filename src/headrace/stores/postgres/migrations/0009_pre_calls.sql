CREATE TABLE {schema}.calls (
  id uuid NOT NULL,
  session uuid,
  job_id uuid,
  batch_id uuid,
  run_id uuid,
  opened_at timestamptz NOT NULL,
  ended_at timestamptz,
  prompt_tokens bigint NOT NULL,
  most_tokens bigint NOT NULL,
  most_nano bigint,
  input_tokens bigint NOT NULL DEFAULT 0,
  output_tokens bigint NOT NULL DEFAULT 0,
  cached_tokens bigint NOT NULL DEFAULT 0,
  cost_nano bigint NOT NULL DEFAULT 0,
  answered int NOT NULL DEFAULT 0,
  unpriced int NOT NULL DEFAULT 0,
  day date NOT NULL,
  state text NOT NULL,
  key text NOT NULL,
  pool text NOT NULL,
  provider text NOT NULL,
  model text NOT NULL,
  purpose text NOT NULL,
  tenant text,
  scopes text[] NOT NULL,
  priced_by text NOT NULL DEFAULT '',
  error text NOT NULL DEFAULT '',
  request_id text,
  CONSTRAINT calls_pkey PRIMARY KEY (id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE UNIQUE INDEX calls_held ON {schema}.calls (key) WHERE state IN ('prepared', 'sent', 'received');
CREATE INDEX calls_in_flight ON {schema}.calls (pool) WHERE state IN ('prepared', 'sent', 'received');
CREATE INDEX calls_orphaned ON {schema}.calls (opened_at, id) WHERE state = 'orphaned';
CREATE INDEX calls_opened ON {schema}.calls (opened_at, id);

CREATE TABLE {schema}.call_items (
  number int NOT NULL,
  key text NOT NULL,
  item text NOT NULL,
  created_at timestamptz NOT NULL,
  CONSTRAINT call_items_pkey PRIMARY KEY (key, number)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX call_items_age ON {schema}.call_items (created_at);

CREATE TABLE {schema}.budgets (
  scope text COLLATE "C" NOT NULL,
  cost_nano bigint,
  tokens bigint,
  CONSTRAINT budgets_pkey PRIMARY KEY (scope)
);

CREATE TABLE {schema}.spend (
  scope text COLLATE "C" NOT NULL,
  error text COLLATE "C" NOT NULL,
  day date NOT NULL,
  settled bigint NOT NULL,
  orphaned bigint NOT NULL,
  answered bigint NOT NULL,
  input_tokens bigint NOT NULL,
  output_tokens bigint NOT NULL,
  cached_tokens bigint NOT NULL,
  cost_nano bigint NOT NULL,
  unpriced bigint NOT NULL,
  lost_tokens bigint NOT NULL,
  lost_nano bigint NOT NULL,
  lost_unpriced bigint NOT NULL,
  CONSTRAINT spend_pkey PRIMARY KEY (scope, day, error)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX spend_age ON {schema}.spend (day);

CREATE TABLE {schema}.name_scopes (
  scope text NOT NULL,
  last_position bigint NOT NULL DEFAULT 0,
  CONSTRAINT name_scopes_pkey PRIMARY KEY (scope)
) WITH (fillfactor = 50);

CREATE TABLE {schema}.known_names (
  owner uuid NOT NULL,
  position bigint NOT NULL,
  scope text NOT NULL,
  key text NOT NULL,
  name text NOT NULL,
  CONSTRAINT known_names_pkey PRIMARY KEY (scope, position)
);
CREATE UNIQUE INDEX known_names_once ON {schema}.known_names (scope, md5(key));
CREATE INDEX known_names_owner ON {schema}.known_names (scope, owner);

CREATE FUNCTION {schema}.lose_calls(dead uuid[], clock timestamptz) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  ended bigint;
BEGIN
  PERFORM FROM {schema}.calls AS c WHERE c.id = ANY(dead) ORDER BY c.id FOR UPDATE;
  WITH lost AS MATERIALIZED (
    SELECT c.id, c.state FROM {schema}.calls AS c
    WHERE c.id = ANY(dead) AND c.state IN ('prepared', 'sent', 'received')
      AND NOT EXISTS (SELECT FROM {schema}.sessions AS s WHERE s.id = c.session AND s.expires_at > clock)
  ), removed AS (
    DELETE FROM {schema}.calls AS c USING lost AS l WHERE c.id = l.id AND l.state = 'prepared'
  ), orphans AS (
    UPDATE {schema}.calls AS c SET state = 'orphaned', ended_at = clock, input_tokens = c.prompt_tokens,
      output_tokens = c.most_tokens, cost_nano = coalesce(c.most_nano, 0), unpriced = (c.most_nano IS NULL)::int
    FROM lost AS l WHERE c.id = l.id AND l.state <> 'prepared'
    RETURNING c.scopes, c.day, c.input_tokens + c.output_tokens AS tokens, c.cost_nano, c.unpriced
  ), counted AS (
    INSERT INTO {schema}.spend AS s (scope, error, day, settled, orphaned, answered, input_tokens, output_tokens,
      cached_tokens, cost_nano, unpriced, lost_tokens, lost_nano, lost_unpriced)
    SELECT u.scope COLLATE "C", '', o.day, 0, count(*), 0, 0, 0, 0, 0, 0, sum(o.tokens), sum(o.cost_nano), sum(o.unpriced)
    FROM orphans AS o, unnest(o.scopes) AS u (scope)
    GROUP BY 1, 3 ORDER BY 1, 3
    ON CONFLICT (scope, day, error) DO UPDATE SET orphaned = s.orphaned + excluded.orphaned,
      lost_tokens = s.lost_tokens + excluded.lost_tokens, lost_nano = s.lost_nano + excluded.lost_nano,
      lost_unpriced = s.lost_unpriced + excluded.lost_unpriced
  )
  SELECT count(*) INTO ended FROM lost;
  RETURN ended;
END
$$;

CREATE FUNCTION {schema}.open_calls(opener uuid, ids uuid[], keys text[], pools text[], providers text[], models text[],
  purposes text[], jobs uuid[], batches uuid[], runs uuid[], tenants text[], scope_lists text[], prompts bigint[],
  mosts bigint[], most_nanos bigint[], sends boolean[], freshes boolean[], flight_limits int[], day_limits int[],
  clock timestamptz)
RETURNS TABLE (number int, verdict text, reply text, refuser text, spooled text[]) LANGUAGE plpgsql AS $$
DECLARE
  live CONSTANT text[] := ARRAY['prepared', 'sent', 'received'];
  today date;
  limited text[];
  budgeted text[];
  states text[];
  replies text[];
  held boolean[];
  dead uuid[];
  lasting boolean := false;
  flights bigint[];
  dailies bigint[];
  nano_rooms bigint[];
  token_rooms bigint[];
  verdicts text[] := '{}';
  refusers text[] := '{}';
  opened_ids uuid[] := '{}';
  opened_keys text[] := '{}';
  opened int[] := '{}';
  scopes text[];
  place int;
BEGIN
  budgeted := ARRAY(SELECT b.scope FROM {schema}.budgets AS b WHERE b.scope = ANY(ARRAY(
    SELECT u.scope FROM unnest(scope_lists) AS l (list), unnest(string_to_array(l.list, E'\x1f')) AS u (scope)))
    ORDER BY b.scope);
  limited := ARRAY(SELECT DISTINCT w.pool FROM unnest(pools, flight_limits, day_limits) AS w (pool, flight, day)
    WHERE w.flight IS NOT NULL OR w.day IS NOT NULL);
  -- Rivals wait here, in one order; what is looked at from now on is what they left.
  PERFORM pg_advisory_xact_lock(l.lock) FROM (
    SELECT DISTINCT hashtextextended(n.name, 0) AS lock FROM (
      SELECT '{schema} call ' || k.key FROM unnest(keys) AS k (key)
      UNION ALL SELECT '{schema} pool ' || p.pool FROM unnest(limited) AS p (pool)
      UNION ALL SELECT '{schema} budget ' || b.scope FROM unnest(budgeted) AS b (scope)) AS n (name)
    ORDER BY lock OFFSET 0) AS l;
  clock := coalesce(clock, clock_timestamp());
  today := (clock AT TIME ZONE 'UTC')::date;

  LOOP
    SELECT array_agg(o.state ORDER BY w.number), array_agg(a.answer ORDER BY w.number),
      array_agg(h.id <> w.id ORDER BY w.number),
      array_agg(h.id) FILTER (WHERE o.id IS NULL AND a.key IS NULL AND h.id IS NOT NULL AND s.id IS NULL)
    INTO states, replies, held, dead
    FROM unnest(ids, keys, freshes) WITH ORDINALITY AS w (id, key, fresh, number)
      LEFT JOIN {schema}.calls AS o ON o.id = w.id
      LEFT JOIN {schema}.calls AS h ON h.key = w.key AND h.state IN ('prepared', 'sent', 'received')
      LEFT JOIN {schema}.sessions AS s ON s.id = h.session AND s.expires_at > clock
      LEFT JOIN {schema}.answers AS a ON a.key = w.key AND NOT w.fresh;
    EXIT WHEN dead IS NULL;
    lasting := true;
    PERFORM {schema}.lose_calls(dead, clock);
  END LOOP;

  IF array_remove(states, NULL) <> '{}' THEN
    -- After a lost answer: they are here already.
    lasting := true;
    DELETE FROM {schema}.calls AS c USING unnest(ids, states, replies) AS w (id, state, reply)
    WHERE c.id = w.id AND w.state = ANY(live) AND w.reply IS NOT NULL;
    UPDATE {schema}.calls AS c SET session = opener,
      state = CASE WHEN w.send AND c.state = 'prepared' THEN 'sent' ELSE c.state END
    FROM unnest(ids, states, replies, sends) AS w (id, state, reply, send)
    WHERE c.id = w.id AND w.state = ANY(live) AND w.reply IS NULL;
  END IF;

  IF limited <> '{}' THEN
    SELECT array_agg(f.calls ORDER BY l.number), array_agg(f.opened_today + e.calls ORDER BY l.number)
    INTO flights, dailies
    FROM unnest(limited) WITH ORDINALITY AS l (pool, number)
      CROSS JOIN LATERAL (SELECT count(*) AS calls, count(*) FILTER (WHERE c.day = today) AS opened_today
        FROM {schema}.calls AS c WHERE c.pool = l.pool AND c.state IN ('prepared', 'sent', 'received')) AS f
      CROSS JOIN LATERAL (SELECT coalesce(sum(s.settled + s.orphaned), 0)::bigint AS calls
        FROM {schema}.spend AS s WHERE s.scope = 'pool:' || l.pool AND s.day = today) AS e;
  END IF;
  IF budgeted <> '{}' THEN
    SELECT array_agg(b.cost_nano - p.nano - coalesce(r.nano, 0) ORDER BY n.number),
      array_agg(b.tokens - p.tokens - coalesce(r.tokens, 0) ORDER BY n.number)
    INTO nano_rooms, token_rooms
    FROM unnest(budgeted) WITH ORDINALITY AS n (scope, number)
      LEFT JOIN {schema}.budgets AS b ON b.scope = n.scope
      CROSS JOIN LATERAL (SELECT coalesce(sum(s.cost_nano + s.lost_nano), 0)::bigint AS nano,
          coalesce(sum(s.input_tokens + s.output_tokens + s.lost_tokens), 0)::bigint AS tokens
        FROM {schema}.spend AS s WHERE s.scope = n.scope AND (n.scope <> 'day' OR s.day = today)) AS p
      LEFT JOIN (SELECT u.scope, sum(c.most_nano)::bigint AS nano, sum(c.prompt_tokens + c.most_tokens)::bigint AS tokens
        FROM {schema}.calls AS c, unnest(c.scopes) AS u (scope)
        WHERE c.state IN ('prepared', 'sent', 'received') AND u.scope = ANY(budgeted)
          AND (u.scope <> 'day' OR c.day = today)
        GROUP BY u.scope) AS r ON r.scope = n.scope;
  END IF;

  FOR i IN 1 .. cardinality(ids) LOOP
    verdict := NULL;
    refuser := NULL;
    IF replies[i] IS NOT NULL THEN
      verdict := 'answered';
    ELSIF states[i] IS NOT NULL THEN
      verdict := CASE WHEN states[i] = ANY(live) THEN 'opened' ELSE 'ended' END;
    ELSIF held[i] THEN
      verdict := 'held';
    ELSE
      place := array_position(opened_keys, keys[i]);
      IF place IS NOT NULL THEN
        verdict := CASE WHEN opened_ids[place] = ids[i] THEN 'opened' ELSE 'held' END;
      END IF;
    END IF;
    IF verdict IS NULL THEN
      place := array_position(limited, pools[i]);
      IF flights[place] >= flight_limits[i] THEN
        verdict := 'pool_full';
      ELSIF dailies[place] >= day_limits[i] THEN
        verdict := 'day_full';
      ELSIF budgeted <> '{}' THEN
        scopes := string_to_array(scope_lists[i], E'\x1f');
        FOR b IN 1 .. cardinality(budgeted) LOOP
          IF budgeted[b] = ANY(scopes)
              AND (nano_rooms[b] < coalesce(most_nanos[i], 0) OR token_rooms[b] < prompts[i] + mosts[i]) THEN
            verdict := 'over_budget';
            refuser := budgeted[b];
            EXIT;
          END IF;
        END LOOP;
      END IF;
      IF verdict IS NULL THEN
        verdict := 'opened';
        opened := opened || i;
        opened_ids := opened_ids || ids[i];
        opened_keys := opened_keys || keys[i];
        lasting := lasting OR sends[i];
        IF place IS NOT NULL THEN
          flights[place] := flights[place] + 1;
          dailies[place] := dailies[place] + 1;
        END IF;
        FOR b IN 1 .. cardinality(budgeted) LOOP
          IF budgeted[b] = ANY(scopes) THEN
            nano_rooms[b] := nano_rooms[b] - coalesce(most_nanos[i], 0);
            token_rooms[b] := token_rooms[b] - prompts[i] - mosts[i];
          END IF;
        END LOOP;
      END IF;
    END IF;
    verdicts := verdicts || verdict;
    refusers := refusers || refuser;
  END LOOP;

  IF opened <> '{}' THEN
    INSERT INTO {schema}.calls (id, session, job_id, batch_id, run_id, opened_at, prompt_tokens, most_tokens, most_nano,
      day, state, key, pool, provider, model, purpose, tenant, scopes)
    SELECT w.id, opener, w.job, w.batch, w.run, clock, w.prompt, w.most, w.nano, today,
      CASE WHEN w.send THEN 'sent' ELSE 'prepared' END, w.key, w.pool, w.provider, w.model, w.purpose, w.tenant,
      string_to_array(w.scope_list, E'\x1f')
    FROM unnest(ids, keys, pools, providers, models, purposes, jobs, batches, runs, tenants, scope_lists, prompts, mosts,
        most_nanos, sends) WITH ORDINALITY
      AS w (id, key, pool, provider, model, purpose, job, batch, run, tenant, scope_list, prompt, most, nano, send, number)
    WHERE w.number = ANY(opened);
  END IF;
  IF EXISTS (SELECT FROM {schema}.call_items AS i WHERE i.key = ANY(opened_keys)) THEN
    DELETE FROM {schema}.call_items AS i
    USING (SELECT o.key, o.number, row_number() OVER (PARTITION BY o.key ORDER BY o.number) - 1 AS place
      FROM {schema}.call_items AS o WHERE o.key = ANY(opened_keys)) AS n
    WHERE i.key = n.key AND i.number = n.number AND n.number <> n.place;
  END IF;
  IF NOT lasting THEN
    -- A call that is only prepared may be lost with the server: it was not sent, and cannot be any more.
    PERFORM set_config('synchronous_commit', 'off', true);
  END IF;
  RETURN QUERY SELECT w.number::int, w.verdict, w.reply, w.refuser,
    CASE WHEN w.verdict = 'opened' THEN
      ARRAY(SELECT i.item FROM {schema}.call_items AS i WHERE i.key = w.key ORDER BY i.number) END
  FROM unnest(verdicts, replies, refusers, keys) WITH ORDINALITY AS w (verdict, reply, refuser, key, number);
END
$$;

CREATE FUNCTION {schema}.settle_calls(ids uuid[], states text[], keys text[], pools text[], providers text[],
  models text[], purposes text[], jobs uuid[], batches uuid[], runs uuid[], tenants text[], scope_lists text[],
  prompts bigint[], mosts bigint[], most_nanos bigint[], replies text[], replaces boolean[], inputs bigint[],
  outputs bigint[], cacheds bigint[], answereds int[], costs bigint[], unpriceds int[], tables text[], faults text[],
  request_ids text[], clock timestamptz)
RETURNS TABLE (number int, stands boolean, reply text) LANGUAGE plpgsql AS $$
DECLARE
  given text[] := ARRAY(SELECT DISTINCT w.key FROM unnest(keys, replies) AS w (key, reply) WHERE w.reply IS NOT NULL);
  replaced text[];
BEGIN
  clock := coalesce(clock, clock_timestamp());
  PERFORM FROM {schema}.calls AS c WHERE c.id = ANY(ids) ORDER BY c.id FOR UPDATE;
  IF given <> '{}' THEN
    replaced := ARRAY(SELECT w.key FROM unnest(ids, keys, replies, replaces) AS w (id, key, reply, replaces)
      WHERE w.replaces AND w.reply IS NOT NULL
        AND NOT EXISTS (SELECT FROM {schema}.calls AS c WHERE c.id = w.id AND c.state = 'settled'));
    -- An answer that stands is locked, though not written: it cannot be pruned before it is read below.
    INSERT INTO {schema}.answers AS a (key, answer, created_at)
    SELECT DISTINCT ON (w.key) w.key, w.reply, clock
    FROM unnest(keys, replies, replaces) WITH ORDINALITY AS w (key, reply, replaces, number)
      CROSS JOIN LATERAL (SELECT w.replaces AND w.key = ANY(replaced) AS late) AS l
    WHERE w.reply IS NOT NULL
    ORDER BY w.key, l.late DESC, CASE WHEN l.late THEN - w.number ELSE w.number END
    ON CONFLICT (key) DO UPDATE SET answer = excluded.answer, created_at = excluded.created_at
      WHERE excluded.key = ANY(replaced);
    DELETE FROM {schema}.call_items AS i WHERE i.key = ANY(given);
  END IF;

  WITH said AS MATERIALIZED (
    SELECT DISTINCT ON (w.id) w.* FROM unnest(ids, states, keys, pools, providers, models, purposes, jobs, batches, runs,
      tenants, scope_lists, prompts, mosts, most_nanos, inputs, outputs, cacheds, answereds, costs, unpriceds, tables,
      faults, request_ids) WITH ORDINALITY
      AS w (id, state, key, pool, provider, model, purpose, job, batch, run, tenant, scope_list, prompt, most, nano,
        input, output, cached, answered, cost, unpriced, priced_by, fault, request_id, number)
    ORDER BY w.id, w.state = 'orphaned', w.number
  ), orphans AS MATERIALIZED (
    SELECT c.* FROM {schema}.calls AS c WHERE c.id = ANY(ids) AND c.state = 'orphaned'
  ), removed AS (
    DELETE FROM {schema}.calls AS c WHERE c.id = ANY(ids) AND c.state = 'prepared'
  ), ended AS (
    UPDATE {schema}.calls AS c SET state = s.state, ended_at = clock, input_tokens = s.input, output_tokens = s.output,
      cached_tokens = s.cached, answered = s.answered, cost_nano = s.cost, unpriced = s.unpriced,
      priced_by = s.priced_by, error = s.fault, request_id = s.request_id
    FROM said AS s
    WHERE c.id = s.id AND (c.state IN ('sent', 'received') OR c.state = 'orphaned' AND s.state = 'settled')
    RETURNING c.*
  ), added AS (
    INSERT INTO {schema}.calls AS c (id, job_id, batch_id, run_id, opened_at, ended_at, prompt_tokens, most_tokens,
      most_nano, input_tokens, output_tokens, cached_tokens, cost_nano, answered, unpriced, day, state, key, pool,
      provider, model, purpose, tenant, scopes, priced_by, error, request_id)
    SELECT s.id, s.job, s.batch, s.run, clock, clock, s.prompt, s.most, s.nano, s.input, s.output, s.cached, s.cost,
      s.answered, s.unpriced, (clock AT TIME ZONE 'UTC')::date, s.state, s.key, s.pool, s.provider, s.model, s.purpose,
      s.tenant, string_to_array(s.scope_list, E'\x1f'), s.priced_by, s.fault, s.request_id
    FROM said AS s
    WHERE NOT EXISTS (SELECT FROM {schema}.calls AS c WHERE c.id = s.id)
      AND (s.input, s.output, s.cached, s.answered, s.cost, s.unpriced) <> (0, 0, 0, 0, 0, 0)
    ORDER BY s.id
    ON CONFLICT (id) DO NOTHING
    RETURNING c.*
  ), changes AS (
    SELECT 1 AS sign, e.* FROM ended AS e
    UNION ALL SELECT 1, a.* FROM added AS a
    UNION ALL SELECT -1, o.* FROM orphans AS o JOIN ended AS e ON e.id = o.id
  )
  INSERT INTO {schema}.spend AS s (scope, error, day, settled, orphaned, answered, input_tokens, output_tokens,
    cached_tokens, cost_nano, unpriced, lost_tokens, lost_nano, lost_unpriced)
  SELECT u.scope COLLATE "C", c.error COLLATE "C", c.day, sum(c.sign * t.paid), sum(c.sign * t.lost),
    sum(c.sign * t.paid * c.answered), sum(c.sign * t.paid * c.input_tokens), sum(c.sign * t.paid * c.output_tokens),
    sum(c.sign * t.paid * c.cached_tokens), sum(c.sign * t.paid * c.cost_nano), sum(c.sign * t.paid * c.unpriced),
    sum(c.sign * t.lost * (c.input_tokens + c.output_tokens)), sum(c.sign * t.lost * c.cost_nano),
    sum(c.sign * t.lost * c.unpriced)
  FROM changes AS c CROSS JOIN LATERAL (SELECT (c.state = 'settled')::int AS paid, (c.state = 'orphaned')::int AS lost) AS t,
    unnest(c.scopes) AS u (scope)
  GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
  ON CONFLICT (scope, day, error) DO UPDATE SET settled = s.settled + excluded.settled,
    orphaned = s.orphaned + excluded.orphaned, answered = s.answered + excluded.answered,
    input_tokens = s.input_tokens + excluded.input_tokens, output_tokens = s.output_tokens + excluded.output_tokens,
    cached_tokens = s.cached_tokens + excluded.cached_tokens, cost_nano = s.cost_nano + excluded.cost_nano,
    unpriced = s.unpriced + excluded.unpriced, lost_tokens = s.lost_tokens + excluded.lost_tokens,
    lost_nano = s.lost_nano + excluded.lost_nano, lost_unpriced = s.lost_unpriced + excluded.lost_unpriced;

  RETURN QUERY SELECT w.number::int, a.answer IS NOT DISTINCT FROM w.reply,
    CASE WHEN a.answer IS DISTINCT FROM w.reply THEN a.answer END
  FROM unnest(keys, replies) WITH ORDINALITY AS w (key, reply, number)
    LEFT JOIN {schema}.answers AS a ON a.key = w.key;
END
$$;

CREATE FUNCTION {schema}.claim_names(claimed text, owners uuid[], keys text[], shown text[], seen bigint)
RETURNS TABLE (newer boolean, key text, name text, owner uuid, "position" bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  last bigint;
BEGIN
  INSERT INTO {schema}.name_scopes (scope) VALUES (claimed) ON CONFLICT (scope) DO NOTHING;
  SELECT s.last_position INTO last FROM {schema}.name_scopes AS s WHERE s.scope = claimed FOR UPDATE;
  RETURN QUERY SELECT true, n.key, n.name, n.owner, n.position FROM {schema}.known_names AS n
    WHERE n.scope = claimed AND n.position > seen AND n.owner <> ALL(owners);
  IF FOUND THEN
    RETURN;
  END IF;
  WITH wanted AS (
    SELECT DISTINCT ON (w.key) w.* FROM unnest(owners, keys, shown) WITH ORDINALITY AS w (owner, key, name, number)
    ORDER BY w.key, w.number
  ), free AS (
    SELECT w.owner, w.key, w.name, row_number() OVER (ORDER BY w.number) AS place FROM wanted AS w
    WHERE NOT EXISTS (SELECT FROM {schema}.known_names AS n
      WHERE n.scope = claimed AND md5(n.key) = md5(w.key) AND n.key = w.key)
  ), taken AS (
    INSERT INTO {schema}.known_names (owner, position, scope, key, name)
    SELECT f.owner, last + f.place, claimed, f.key, f.name FROM free AS f
    RETURNING position
  )
  UPDATE {schema}.name_scopes AS s SET last_position = t.last FROM (SELECT max(position) AS last FROM taken) AS t
  WHERE s.scope = claimed AND t.last IS NOT NULL;
  RETURN QUERY SELECT false, n.key, n.name, n.owner, n.position
  FROM unnest(owners, keys) AS w (owner, key)
    JOIN {schema}.known_names AS n
      ON n.scope = claimed AND md5(n.key) = md5(w.key) AND n.key = w.key AND n.owner = w.owner;
END
$$;
