#!lua flags=no-writes
-- Return a part of the jobs of a run that are not final. Arguments: run, cursor, how many to look at. Returns {next cursor,
-- rows {id, node, state, queue, attempt, failures, started_at, run_at, parked_on}}. Keys: run, job. Complexity: O(N).
-- include runs
local page, rows = call('SSCAN', run_key(ARGV[2], 'jobs'), ARGV[3], 'COUNT', ARGV[4]), {}
for _, id in ipairs(page[2]) do
  local row = call('HMGET', job_key(id), 'node', 'state', 'queue', 'attempt', 'failures', 'started_at', 'run_at',
    'parked_on')
  if row[2] then
    rows[#rows + 1] = {id, unpack(row)}
  end
end
return {page[1], rows}
