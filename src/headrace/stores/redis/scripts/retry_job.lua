#!lua
-- Insert a copy of a failed or cancelled job. Arguments: id, id of the copy. Returns {verdict, detail}: `retried` with
-- the id of the copy there is, `missing`, `unfit` with the job's state, `run` with the job's run and node, or `cancelling`,
-- while its batch is.
-- Keys: those of an insert, dead, batch. Complexity: O(log M).
-- include retrying
local id = ARGV[2]
local row = read_ended(id)
if not row.state then
  return {'missing', id}
elseif row.state ~= 'failed' and row.state ~= 'cancelled' then
  return {'unfit', row.state}
elseif row.run then
  return {'run', row.run .. ' ' .. (row.node or '')}
elseif row.retried_by then
  return {'retried', row.retried_by}
elseif batch_cancelling(row) then
  return {'cancelling', row.batch}
end
retry_job(id, row, ARGV[3])
flush()
return {'retried', ARGV[3]}
