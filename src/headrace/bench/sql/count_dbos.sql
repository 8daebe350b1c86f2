-- What DBOS calls done.
SELECT count(*) FROM dbos.workflow_status WHERE status = 'SUCCESS'
