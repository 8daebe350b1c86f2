#!lua flags=no-writes
-- Return "RUN PATH" of all that wait for a signal. Arguments: its key. Keys: wait. Complexity: O(N).
-- include board
return call('SMEMBERS', ROOT .. 'wait:' .. ARGV[2])
