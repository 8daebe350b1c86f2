#!lua flags=allow-oom
-- Apply what the ends of unsettled jobs set going in their runs, of each job once. Arguments: JSON list of {id, effects as
-- in lib/effects.lua}. Returns the ids of those that were unsettled until then.
-- Keys: unsettled, run, runs, those of an insert. Complexity: O((N + E) log M), E what the effects have.
-- include effects
local settled = {}
for _, one in ipairs(cjson.decode(ARGV[2])) do
  if call('ZREM', ROOT .. 'unsettled', one[1]) == 1 then
    apply_effects(one[2])
    settled[#settled + 1] = one[1]
  end
end
flush()
return settled
