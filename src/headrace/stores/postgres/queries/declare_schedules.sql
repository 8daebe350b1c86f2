-- Store what an app asks for at its start: a new schedule fires from now on, one whose rule changed is planned anew.
-- Locks: the schedules' rows, in the order of their names. Index: primary key.
INSERT INTO {schema}.schedules AS s (name, created_at, declared_at, after_at, rule, definition)
SELECT d.name, t.now, t.now, t.now, d.rule, d.definition::json
FROM unnest(%(names)s::text[], %(rules)s::text[], %(definitions)s::text[]) AS d (name, rule, definition),
  (SELECT coalesce(%(now)s::timestamptz, now()) AS now) AS t
ORDER BY d.name
ON CONFLICT (name) DO UPDATE
SET declared_at = excluded.declared_at, rule = excluded.rule, definition = excluded.definition,
  after_at = CASE WHEN s.rule = excluded.rule THEN s.after_at ELSE excluded.after_at END,
  next_at = CASE WHEN s.rule = excluded.rule THEN s.next_at END
