-- Ask a connection that only listens whether its server is still there.
-- Locks: none. Index: none.
SELECT 1
