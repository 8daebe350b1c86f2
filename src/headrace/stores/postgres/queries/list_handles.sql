-- Handles, the newest first; all of them, or those that wait.
-- Locks: none. Index: flow_resume_handles_newest.
SELECT h.* FROM {schema}.flow_resume_handles AS h
WHERE h.state <> 'early' AND (h.state = 'waiting' OR NOT %(waiting)s::boolean)
ORDER BY h.created_at DESC, h.correlation_id DESC
LIMIT %(limit)s::int
