#!lua flags=allow-oom
-- End live calls of sessions that are missing or have ended: prepared ones are removed, others become orphaned.
-- Arguments: limit. Returns how many.
-- Keys: flyers, flying, sessions, call, calls, calls_of, held, live, orphans, sum, sums, used.
-- Complexity: O(S + N log M), S the sessions that made calls.
-- include ledger
local left, ended = tonumber(ARGV[2]), 0
for _, session in ipairs(call('SMEMBERS', ROOT .. 'flyers')) do
  if left > 0 and not alive(session) then
    for _, id in ipairs(call('SRANDMEMBER', flying_key(session), left)) do
      local row = read_call(id)
      if row and row.session == session then
        lose_call(id, row)
        left, ended = left - 1, ended + 1
      else
        call('SREM', flying_key(session), id)
      end
    end
    if call('EXISTS', flying_key(session)) == 0 then
      call('SREM', ROOT .. 'flyers', session)
    end
  end
end
write_sums()
return ended
