#!lua flags=allow-oom
-- Give leadership up, if it is still held. Arguments: session, term. Keys: leader. Complexity: O(1).
-- include terms
if ARGV[2] ~= '' and leads(ARGV[2], ARGV[3]) then
  call('HSET', ROOT .. 'leader', 'expires_at', NOW_TEXT)
end
