-- Topics of the log by name, or by what their name begins with, and how many partitions they have.
-- Locks: none. Index: log_topics_name, or none: topics are few.
SELECT t.id, t.name, t.partitions FROM {schema}.log_topics AS t
WHERE t.name = ANY(%(names)s::text[])
  OR EXISTS (SELECT FROM unnest(%(prefixes)s::text[]) AS p (prefix) WHERE starts_with(t.name, p.prefix))
