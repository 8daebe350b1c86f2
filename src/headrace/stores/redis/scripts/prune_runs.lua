#!lua flags=allow-oom
-- Remove final runs that ended longer ago than their retention, with their nodes and keys, and snapshots that nothing uses
-- any more. Arguments: session and term of the leader or empty, retention, limit. Returns how many.
-- Keys: run, runs, key, snapshot. Complexity: O(N log M).
-- include runs, terms
if not leads(ARGV[2], ARGV[3]) then
  return 0
end
local old = call('ZRANGE', ROOT .. 'runs:ended', '-inf', text(NOW - ARGV[4]), 'BYSCORE', 'LIMIT', 0, ARGV[5])
for _, id in ipairs(old) do
  local row = call('HMGET', run_key(id), 'state', 'workflow', 'key', 'snapshot')
  if row[3] then
    call('DEL', run_name(row[2], row[3]))
  end
  forget_in_index(id, row[1], row[2])
  leave_snapshot(row[4])
  call('UNLINK', run_key(id), run_key(id, 'nodes'), run_key(id, 'order'), run_key(id, 'joins'), run_key(id, 'jobs'))
  call('ZREM', ROOT .. 'runs:ended', id)
end
return #old
