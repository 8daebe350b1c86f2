-- Feeds and API tokens of the HTTP service. The code of the release before knows neither.
CREATE TABLE {schema}.feeds (
  id bigint GENERATED ALWAYS AS IDENTITY,
  last_seq bigint NOT NULL,
  oldest_at timestamptz NOT NULL,
  name text COLLATE "C" NOT NULL,
  CONSTRAINT feeds_pkey PRIMARY KEY (id),
  CONSTRAINT feeds_name UNIQUE (name)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0);
CREATE INDEX feeds_oldest ON {schema}.feeds (oldest_at);

CREATE TABLE {schema}.feed_entries (
  feed_id bigint NOT NULL,
  seq bigint NOT NULL,
  appended_at timestamptz NOT NULL,
  type text NOT NULL,
  key text COLLATE "C",
  data json NOT NULL,
  CONSTRAINT feed_entries_pkey PRIMARY KEY (feed_id, seq)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05);
CREATE UNIQUE INDEX feed_entries_key ON {schema}.feed_entries (feed_id, key) WHERE key IS NOT NULL;

CREATE TABLE {schema}.api_tokens (
  id uuid NOT NULL,
  created_at timestamptz NOT NULL,
  expires_at timestamptz,
  revoked_at timestamptz,
  used_at timestamptz,
  name text NOT NULL,
  shown text NOT NULL,
  digest text COLLATE "C" NOT NULL,
  scopes text[] NOT NULL,
  CONSTRAINT api_tokens_pkey PRIMARY KEY (id),
  CONSTRAINT api_tokens_digest UNIQUE (digest)
);
CREATE INDEX api_tokens_newest ON {schema}.api_tokens (created_at, id);

-- Append entries to a feed whose row it holds to the commit, so that numbers are given in the order of commits; fresh:
-- the entry is new. The time is that of the turn: of a feed none is before that of an earlier entry.
CREATE FUNCTION {schema}.append_entries(feed text, types text[], texts text[], keys text[], clock timestamptz)
RETURNS TABLE (seq bigint, fresh boolean) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  held bigint;
  before bigint;
  last bigint;
  turn timestamptz;
  entry record;
BEGIN
  LOOP
    SELECT f.id, f.last_seq INTO held, last FROM {schema}.feeds AS f WHERE f.name = feed FOR UPDATE;
    EXIT WHEN FOUND;
    INSERT INTO {schema}.feeds (name, last_seq, oldest_at) VALUES (feed, 0, coalesce(clock, clock_timestamp()))
    ON CONFLICT (name) DO NOTHING;
  END LOOP;
  before := last;
  turn := coalesce(clock, clock_timestamp());
  FOR entry IN SELECT * FROM unnest(types, texts, keys) AS n (type, data, key) LOOP
    seq := NULL;
    IF entry.key IS NOT NULL THEN
      SELECT e.seq INTO seq FROM {schema}.feed_entries AS e WHERE e.feed_id = held AND e.key = entry.key;
    END IF;
    fresh := seq IS NULL;
    IF fresh THEN
      last := last + 1;
      seq := last;
      INSERT INTO {schema}.feed_entries (feed_id, seq, appended_at, type, key, data)
      VALUES (held, last, turn, entry.type, entry.key, entry.data::json);
    END IF;
    RETURN NEXT;
  END LOOP;
  IF last > before THEN
    UPDATE {schema}.feeds AS f SET last_seq = last WHERE f.id = held;
  END IF;
END
$$;
