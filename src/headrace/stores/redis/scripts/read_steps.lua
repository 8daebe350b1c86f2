#!lua flags=no-writes
-- Return steps of several jobs in the order asked for, nil for each that is not stored. Arguments: id and name, in turn.
-- Keys: steps. Complexity: O(N).
-- include keys
local values = {}
for index = 2, #ARGV, 2 do
  values[#values + 1] = call('HGET', ROOT .. 'steps:' .. ARGV[index], ARGV[index + 1])
end
return values
