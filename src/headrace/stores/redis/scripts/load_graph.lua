#!lua flags=no-writes
-- Return the graph, JSON text, of a snapshot, or nil. Arguments: hash. Keys: snapshot. Complexity: O(1).
-- include keys
return call('HGET', ROOT .. 'snapshot:' .. ARGV[2], 'graph')
