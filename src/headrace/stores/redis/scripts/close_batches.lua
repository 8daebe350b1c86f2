#!lua flags=allow-oom
-- Close batches that are done and insert their callbacks; those over their policy start cancelling.
-- Arguments: id of a batch and an id for its callback, in turn. Returns rows of `close_batch`.
-- Keys: batch, batches, those of an insert. Complexity: O(N log M).
-- include intake, batches, closing
local rows = {}
for index = 2, #ARGV, 2 do
  rows[#rows + 1] = close_batch(ARGV[index], ARGV[index + 1])
end
flush()
return rows
