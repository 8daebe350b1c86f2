-- Make the table that remembers which migrations were applied.
-- Locks: the table's catalogue entry. Index: its primary key.
CREATE TABLE IF NOT EXISTS {schema}.migrations (
  version int PRIMARY KEY,
  name text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now()
)
