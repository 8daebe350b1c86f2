#!lua flags=no-writes
-- Return a part of the names of a scope, in the order of taking. Arguments: scope, position to go on behind, how many.
-- Returns rows {key, "POSITION OWNER NAME"}. Keys: taken, names. Complexity: O(log M + N).
-- include keys
local rows = {}
for _, key in ipairs(call('ZRANGE', ROOT .. 'taken:' .. ARGV[2], '(' .. ARGV[3], '+inf', 'BYSCORE', 'LIMIT', 0, ARGV[4])) do
  rows[#rows + 1] = {key, call('HGET', ROOT .. 'names:' .. ARGV[2], key)}
end
return rows
