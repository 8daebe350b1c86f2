#!lua flags=no-writes
-- A page of the failed items of a batch that were not retried, in no order. Arguments: batch, cursor, size of the page.
-- Returns {next cursor, rows {id, finished_at, task, queue, batch, error, run, node}}, or nothing for no batch.
-- Keys: batch, job. Complexity: O(N).
-- include keys
local batch = ARGV[2]
if call('EXISTS', batch_key(batch)) == 0 then
  return nil
end
local page = call('SSCAN', batch_key(batch, 'failed'), ARGV[3], 'COUNT', ARGV[4])
local rows = {}
for _, id in ipairs(page[2]) do
  local row = call('HMGET', job_key(id), 'finished_at', 'task', 'queue', 'batch', 'error', 'run', 'node')
  if row[1] then
    rows[#rows + 1] = {id, unpack(row, 1, 7)}
  end
end
return {page[1], rows}
