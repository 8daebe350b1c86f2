#!lua flags=allow-oom
-- Remove what an index by time names and that is over: expired keys of jobs, old answers, parts of
-- answers that nobody went on with, old signals, sessions that ended long ago. Arguments: session and term of the leader or
-- empty, kind (keys, answers, spool, signals, sessions), retention, limit. Returns how many.
-- Keys: keys and key, answers and answer, spool, signals and signal, sessions, session and cancels. Complexity: O(N log M).
-- include keys, terms
if not leads(ARGV[2], ARGV[3]) then
  return 0
end
local PREFIXES = {keys = 'key:', answers = 'answer:', signals = 'signal:'}
local kind, index = ARGV[4], ROOT .. ARGV[4]
local old = call('ZRANGE', index, '-inf', text(NOW - ARGV[5]), 'BYSCORE', 'LIMIT', 0, ARGV[6])
for _, name in ipairs(old) do
  if kind == 'sessions' then
    call('DEL', ROOT .. 'session:' .. name, ROOT .. 'cancels:' .. name)
  elseif kind == 'spool' then
    local key, number = string.match(name, '^(%x+) (%d+)$')
    call('HDEL', ROOT .. 'spool:' .. key, number)
  else
    call('DEL', ROOT .. PREFIXES[kind] .. name)
  end
  call('ZREM', index, name)
end
return #old
