-- The tables of memory: one schema is one project. {schema} is `[memory] schema`.
--
-- Other programs may insert too: the user (if it is new), the blob, then its row of buffer_zone with the defaults.
-- Lock order of everything that writes to what is there: users, flushes (by id), buffer_zone, user_profiles, the rest.

-- Which shape the tables have, and what tells of changes of buffer_zone; one row.
CREATE TABLE {schema}.about (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  version int NOT NULL,                        -- of this file
  changes text NOT NULL DEFAULT ''             -- the statements that made the trigger, so that it is made once
);

-- Who is remembered. All that is known of a user goes with the row.
CREATE TABLE {schema}.users (
  id text COLLATE "C" PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 200),
  created_at timestamptz NOT NULL DEFAULT now(),
  level int NOT NULL DEFAULT 0 CHECK (level BETWEEN 0 AND 10), -- raises the priority: 1 + 0.1 per level
  last_flush int NOT NULL DEFAULT 0,           -- number of the newest flush; who makes flushes holds the row
  language text CHECK (language IN ('en', 'zh')) -- of what is written; null: that of the messages
);

-- What users said, as it was given.
CREATE TABLE {schema}.general_blobs (
  id uuid PRIMARY KEY,                         -- made by the caller: inserting it again changes nothing
  created_at timestamptz NOT NULL DEFAULT now(), -- when it was said; with the id the order within a user
  token_size int NOT NULL CHECK (token_size >= 0),
  user_id text COLLATE "C" NOT NULL REFERENCES {schema}.users ON DELETE CASCADE,
  blob_type text NOT NULL CHECK (blob_type IN ('chat', 'summary', 'doc', 'image', 'code', 'transcript')),
  blob_data jsonb NOT NULL                     -- of a chat {"messages": [{"role", "content", "alias"?, "created_at"?}]}
);
-- Deleting a user, and what a user said in order.
CREATE INDEX general_blobs_user ON {schema}.general_blobs (user_id, created_at, id);

-- Blobs on their way into memory. A row stays when it is done, also when its blob is deleted: the same blob inserted
-- again is known by it.
CREATE TABLE {schema}.buffer_zone (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  blob_id uuid NOT NULL UNIQUE,
  flush_id uuid,                               -- the flush it is bound to, for good; null: in the buffer
  created_at timestamptz NOT NULL DEFAULT now(), -- of the blob: the order
  updated_at timestamptz NOT NULL DEFAULT now(), -- when it came in, and later when its status changed
  token_size int NOT NULL CHECK (token_size >= 0),
  user_id text COLLATE "C" NOT NULL REFERENCES {schema}.users ON DELETE CASCADE,
  blob_type text NOT NULL CHECK (blob_type IN ('chat', 'summary')),
  status text NOT NULL DEFAULT 'idle'          -- idle -> processing -> done | failed | idle (its lease ended)
    CHECK (status IN ('idle', 'processing', 'done', 'failed')),
  CHECK (status = 'idle' OR flush_id IS NOT NULL)
);
-- The buffer of a user (flush_id IS NULL), when it came in, and the rows of a flush.
CREATE INDEX buffer_zone_user ON {schema}.buffer_zone (user_id, flush_id, updated_at, id);
-- Buffers into which nothing came for long; rows in flushes do not pay.
CREATE INDEX buffer_zone_waiting ON {schema}.buffer_zone (updated_at, id) WHERE flush_id IS NULL;

-- Blobs of one user that become memory together, once.
CREATE TABLE {schema}.flushes (
  id uuid PRIMARY KEY,                         -- made of the user and the ids of the blobs
  batch_id uuid,                               -- with which others it is summarised; null: alone
  created_at timestamptz NOT NULL DEFAULT now(),
  begun_at timestamptz,                        -- first
  ended_at timestamptz,                        -- done or failed
  lease_until timestamptz,                     -- of processing: whoever works on it renews this
  looked_at timestamptz NOT NULL DEFAULT now(),  -- when it was last looked whether anybody works on it
  number int NOT NULL,                         -- 1, 2, … of each user: the order
  tokens int NOT NULL,
  fence int NOT NULL DEFAULT 0,                -- raised by each holder; what is written for the flush names it
  round int NOT NULL DEFAULT 0,                -- how often it failed for good and was taken up again
  alone boolean NOT NULL DEFAULT false,        -- the call of its batch is over, and brought it nothing
  state text NOT NULL DEFAULT 'waiting'        -- waiting -> processing -> done | failed | waiting; failed -> waiting
    CHECK (state IN ('waiting', 'processing', 'done', 'failed')),
  reason text NOT NULL CHECK (reason IN ('full', 'idle', 'explicit')),
  user_id text COLLATE "C" NOT NULL REFERENCES {schema}.users ON DELETE CASCADE,
  blob_ids uuid[] NOT NULL,                    -- in the order of time
  summary text,                                -- of its blobs, written once
  result jsonb,                                -- what the model made of it, written once; then what was stored of it
  error text,                                  -- of the last failure
  CHECK ((state = 'processing') = (lease_until IS NOT NULL)),
  CONSTRAINT flushes_number UNIQUE (user_id, number)
);
-- One at a time is worked on per user, whatever races.
CREATE UNIQUE INDEX flushes_processing ON {schema}.flushes (user_id) WHERE state = 'processing';
-- What of a user is to be done, in order.
CREATE INDEX flushes_unfinished ON {schema}.flushes (user_id, number) WHERE state IN ('waiting', 'processing');
-- Leases that end; failures that are old enough to be tried again, and what is old enough to go.
CREATE INDEX flushes_lease ON {schema}.flushes (lease_until) WHERE state = 'processing';
CREATE INDEX flushes_ended ON {schema}.flushes (state, ended_at) WHERE state IN ('done', 'failed');
-- What may be summarised together with others.
CREATE INDEX flushes_unbatched ON {schema}.flushes (created_at, id)
  WHERE state = 'waiting' AND batch_id IS NULL AND summary IS NULL AND fence = 0 AND reason <> 'explicit';
-- What waits for a summary that it shares.
CREATE INDEX flushes_batched ON {schema}.flushes (batch_id)
  WHERE state = 'waiting' AND batch_id IS NOT NULL AND summary IS NULL AND fence = 0 AND NOT alone;
-- Flushes that wait, by when it was last looked whether somebody works on them.
CREATE INDEX flushes_looked_at ON {schema}.flushes (looked_at) WHERE state = 'waiting';
-- The list for people.
CREATE INDEX flushes_created ON {schema}.flushes (created_at, id);

-- Flushes of several users that one call of the model summarises.
CREATE TABLE {schema}.batches (
  id uuid PRIMARY KEY,
  created_at timestamptz NOT NULL DEFAULT now(),
  ended_at timestamptz,                        -- of its call
  called_ms float8,                            -- how long the call took; null: it has not ended, or brought nothing
  flush_ids uuid[] NOT NULL                    -- in the order of their priority
);
-- Calls of late: the size of batches follows how they went.
CREATE INDEX batches_called ON {schema}.batches (ended_at) WHERE called_ms IS NOT NULL;
-- What is old enough to go.
CREATE INDEX batches_created ON {schema}.batches (created_at);

-- Users whose buffer is to be looked at; one row however many changes tell of it.
CREATE TABLE {schema}.pending_checks (
  user_id text COLLATE "C" PRIMARY KEY,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- What is known of users. A deleted slot keeps its row, so that its versions never begin anew.
CREATE TABLE {schema}.user_profiles (
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  version int NOT NULL DEFAULT 1,              -- raised by each change; a change names the one it was made from
  update_hits int NOT NULL DEFAULT 0,          -- how often it was updated
  user_id text COLLATE "C" NOT NULL REFERENCES {schema}.users ON DELETE CASCADE,
  topic text COLLATE "C" NOT NULL CHECK (length(topic) BETWEEN 1 AND 200),
  sub_topic text COLLATE "C" NOT NULL CHECK (length(sub_topic) BETWEEN 1 AND 200),
  content text,                                -- null: deleted
  PRIMARY KEY (user_id, topic, sub_topic)
);

-- What happened in users' lives, one event per flush that told of something.
CREATE TABLE {schema}.user_events (
  id uuid PRIMARY KEY,                         -- of the flush: it cannot be there twice
  created_at timestamptz NOT NULL DEFAULT now(),
  user_id text COLLATE "C" NOT NULL REFERENCES {schema}.users ON DELETE CASCADE,
  event_tip text NOT NULL,                     -- lines that begin with "- "
  event_tags jsonb NOT NULL,                   -- [{"tag", "value"}]
  profile_delta jsonb NOT NULL                 -- [{"content", "attributes": {"topic", "sub_topic"}}]; null: deleted
);
CREATE INDEX user_events_user ON {schema}.user_events (user_id, created_at, id);

-- The lines of events: what is searched.
CREATE TABLE {schema}.user_event_gists (
  event_id uuid NOT NULL REFERENCES {schema}.user_events ON DELETE CASCADE,
  created_at timestamptz NOT NULL DEFAULT now(),
  number int NOT NULL,                         -- from 0
  user_id text COLLATE "C" NOT NULL,
  content text NOT NULL,
  words tsvector NOT NULL,                     -- English stems; of Chinese each character, and pairs of neighbours
  PRIMARY KEY (event_id, number)
);
CREATE INDEX user_event_gists_user ON {schema}.user_event_gists (user_id, created_at);
CREATE INDEX user_event_gists_words ON {schema}.user_event_gists USING gin (words);
