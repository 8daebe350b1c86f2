#!lua flags=allow-oom
-- Allow or forbid starts of a workflow. Arguments: name, 1 or 0. Returns 0 where there is none.
-- Keys: workflow. Complexity: O(1).
-- include workflows
local known = call('EXISTS', workflow_key(ARGV[2]))
if known == 1 then
  call('HSET', workflow_key(ARGV[2]), 'active', ARGV[3])
end
return known
