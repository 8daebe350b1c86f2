#!lua flags=allow-oom
-- Begin to cancel a run: nothing of it is inserted from then on. Arguments: id. Returns missing, requested or already_final.
-- Keys: run, runs. Complexity: O(log M).
-- include runs
local state = run_state(ARGV[2])
if not state then
  return 'missing'
elseif state == 'running' then
  move_run(ARGV[2], 'cancelling')
elseif state ~= 'cancelling' then
  return 'already_final'
end
return 'requested'
