#!lua flags=no-writes
-- Return {state, paths and states in turn, paths and keys of signals in turn} of a run, or nothing. Arguments: run.
-- Keys: run. Complexity: O(N), N the paths of the run.
-- include board
local state = call('GET', status_key(ARGV[2]))
return state and {state, call('HGETALL', status_key(ARGV[2], 'nodes')), call('HGETALL', status_key(ARGV[2], 'waits'))}
