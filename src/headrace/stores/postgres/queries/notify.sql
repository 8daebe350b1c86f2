-- Tell listeners that something changed. Its own tiny transaction, after the commit it tells of: inside that one it
-- would make all commits queue up.
-- Locks: the notification queue, briefly at commit. Index: none.
SELECT pg_notify(%(channel)s, p.payload) FROM unnest(%(payloads)s::text[]) AS p (payload)
