-- Note that a consumer has handled a message, and store the events that come of it; no row: it was noted before, and
-- nothing is stored.
-- Locks: the new note, for which another open transaction that notes the same is waited for; then those of insert_events.
-- Index: primary key of the inbox, and those of insert_events.
WITH noted AS (
  {note_handled}
)
{insert_events}
FROM noted
