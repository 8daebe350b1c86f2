-- Whether a consumer has handled a message.
-- Locks: none. Index: primary key.
SELECT EXISTS (SELECT FROM {schema}.event_inbox
  WHERE consumer = %(consumer)s::text AND message_id = %(message_id)s::text) AS handled
