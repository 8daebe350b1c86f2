#!lua flags=allow-oom
-- Give leadership up, if it is still held. Arguments: session, term as lib/terms.lua has it. Keys: leader. Complexity: O(1).
-- include terms
if ARGV[2] ~= '' and leads(ARGV[2], ARGV[3]) then
  call('HSET', leader_key(string.match(ARGV[3], '^(%l+):')), 'expires_at', NOW_TEXT)
end
