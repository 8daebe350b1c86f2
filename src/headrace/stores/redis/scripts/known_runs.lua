#!lua flags=no-writes
-- Return those of the ids given that are runs. Arguments: ids. Keys: run. Complexity: O(N).
-- include runs
local known = {}
for index = 2, #ARGV do
  if run_state(ARGV[index]) then
    known[#known + 1] = ARGV[index]
  end
end
return known
