#!lua flags=no-writes
-- Read finished items of a batch behind a commit, in the order of their commits, as many as fit an answer of some
-- megabytes. Arguments: batch, commit, how many. Returns rows {commit, id, ordinal, state, result, error, usage,
-- copy that runs it again}.
-- Keys: batch, job. Complexity: O(log M + N).
-- include keys
local MOST = 4000000
local rows, size = {}, 0
local list = call('ZRANGE', batch_key(ARGV[2], 'ended'), '(' .. ARGV[3], '+inf', 'BYSCORE', 'LIMIT', 0, ARGV[4], 'WITHSCORES')
for index = 1, #list, 2 do
  local row = call('HMGET', job_key(list[index]), 'ordinal', 'state', 'result', 'error', 'usage', 'retried_by')
  rows[#rows + 1] = {list[index + 1], list[index], unpack(row, 1, 6)}
  size = size + #(row[3] or '') + #(row[4] or '')
  if size > MOST then
    break
  end
end
return rows
