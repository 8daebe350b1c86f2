-- Remove sums of days that are long over; where a scope has a budget, what was spent counts for ever.
-- Locks: the removed rows. Index: spend_age, primary keys.
DELETE FROM {schema}.spend AS s
USING (SELECT o.scope, o.day, o.error FROM {schema}.spend AS o
  WHERE o.day < ((coalesce(%(now)s::timestamptz, now()) - %(retention)s::interval) AT TIME ZONE 'UTC')::date
    AND NOT EXISTS (SELECT FROM {schema}.budgets AS b WHERE b.scope = o.scope)
  ORDER BY o.day LIMIT %(limit)s::int) AS old
WHERE s.scope = old.scope AND s.day = old.day AND s.error = old.error
RETURNING s.day
