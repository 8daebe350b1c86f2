#!lua flags=no-writes
-- Return a version of a workflow as in lib/workflows.lua, or nil. Arguments: name, version or empty for the latest.
-- Keys: workflow, versions, snapshot. Complexity: O(1).
-- include workflows
return read_workflow(ARGV[2], ARGV[3] ~= '' and ARGV[3] or nil)
