#!lua flags=no-writes
-- Read batches. Arguments: ids. Returns rows {id, {fields and values in turn}} of those that exist.
-- Keys: batch. Complexity: O(N).
-- include keys
local rows = {}
for index = 2, #ARGV do
  local row = call('HGETALL', batch_key(ARGV[index]))
  if #row > 0 then
    rows[#rows + 1] = {ARGV[index], row}
  end
end
return rows
