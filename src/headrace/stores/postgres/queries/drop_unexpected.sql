-- Remove the early events that a handle does not expect; run after open_handle. The rule is that of `expects` in the model.
-- Locks: the removed rows, under that of the handle. Index: primary keys.
DELETE FROM {schema}.resume_events AS e USING {schema}.flow_resume_handles AS h
WHERE h.correlation_id = %(correlation_id)s AND e.correlation_id = h.correlation_id
  AND NOT CASE WHEN e.dead THEN e.type = ANY(h.request_types) AND (h.agents = '{}' OR e.agent = ANY(h.agents))
    ELSE e.type = ANY(h.expect_types) END
