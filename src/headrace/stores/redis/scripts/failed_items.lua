#!lua flags=no-writes
-- Read a page of the failed items of a batch, in no order. Arguments: batch, cursor, size of the page.
-- Returns {next cursor, id, ordinal, …}. Keys: batch, job. Complexity: O(N).
-- include keys
local page = call('SSCAN', batch_key(ARGV[2], 'failed'), ARGV[3], 'COUNT', ARGV[4])
local found = {page[1]}
for _, id in ipairs(page[2]) do
  found[#found + 1] = id
  found[#found + 1] = call('HGET', job_key(id), 'ordinal')
end
return found
