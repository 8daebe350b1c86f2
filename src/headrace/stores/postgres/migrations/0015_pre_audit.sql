-- The audit: who did what. The code of the release before knows nothing of it.
CREATE TABLE {schema}.actions (
  id uuid NOT NULL,
  done_at timestamptz NOT NULL,
  token_id uuid,
  status smallint NOT NULL,
  via text NOT NULL,
  who text NOT NULL,
  address text NOT NULL,
  operation text COLLATE "C" NOT NULL,
  subject json NOT NULL,
  detail json NOT NULL,
  CONSTRAINT actions_pkey PRIMARY KEY (id)
);
CREATE INDEX actions_newest ON {schema}.actions (done_at, id);
CREATE INDEX actions_who ON {schema}.actions (who, done_at, id);
CREATE INDEX actions_operation ON {schema}.actions (operation, done_at, id);
