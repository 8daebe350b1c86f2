#!lua flags=no-writes
-- Return those of the ids given that exist. Arguments: ids. Keys: job. Complexity: O(N).
-- include keys
local known = {}
for index = 2, #ARGV do
  if call('EXISTS', job_key(ARGV[index])) == 1 then
    known[#known + 1] = ARGV[index]
  end
end
return known
