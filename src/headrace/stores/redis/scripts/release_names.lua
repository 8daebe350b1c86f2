#!lua flags=allow-oom
-- Look at a part of the names of a scope and give back those of an owner. Arguments: scope, owner, position to go on
-- behind, how many to look at. Returns {how many were given back, position of the last one, or -1: there is no more}.
-- Keys: taken, names. Complexity: O(N log M).
-- include keys
local names, taken, given = ROOT .. 'names:' .. ARGV[2], ROOT .. 'taken:' .. ARGV[2], 0
local part = call('ZRANGE', taken, '(' .. ARGV[4], '+inf', 'BYSCORE', 'LIMIT', 0, ARGV[5], 'WITHSCORES')
for index = 1, #part, 2 do
  local known = call('HGET', names, part[index])
  if string.match(known, '^%d+ (%x+)') == ARGV[3] then
    call('HDEL', names, part[index])
    call('ZREM', taken, part[index])
    given = given + 1
  end
end
return {given, #part < 2 * ARGV[5] and -1 or tonumber(part[#part])}
