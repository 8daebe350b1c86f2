#!lua flags=no-writes
-- Return the signal of a key, JSON text, or nil. Arguments: key. Keys: signal. Complexity: O(1).
-- include waiting
return call('HGET', signal_key(ARGV[2]), 'payload')
