#!lua flags=allow-oom
-- Take names whose keys are free in a scope, in order, or return names that the caller has not seen.
-- Arguments: scope, highest position that was seen, most to return, then owner, key and name of each. Returns {1, rows
-- {key, position} of those that are their claimers'}, or {0, rows {key, "POSITION OWNER NAME"}}, the first of those that
-- were not seen.
-- Keys: names, taken, positions. Complexity: O(N log M).
-- include keys
local scope, owners, news, own = ARGV[2], {}, {}, {}
local names, taken = ROOT .. 'names:' .. scope, ROOT .. 'taken:' .. scope
for index = 5, #ARGV, 3 do
  owners[ARGV[index]] = true
end
local place, most = 0, tonumber(ARGV[4])
repeat
  local page = call('ZRANGE', taken, '(' .. ARGV[3], '+inf', 'BYSCORE', 'LIMIT', place, most)
  for _, key in ipairs(page) do
    local known = call('HGET', names, key)
    if not owners[string.match(known, '^%d+ (%x+)')] then
      news[#news + 1] = {key, known}
    end
  end
  place = place + most
until #page < most or #news > 0
if #news > 0 then
  return {0, news}
end
for index = 5, #ARGV, 3 do
  local owner, key = ARGV[index], ARGV[index + 1]
  local known = call('HGET', names, key)
  if not known then
    local position = call('HINCRBY', ROOT .. 'positions', scope, 1)
    known = text(position) .. ' ' .. owner .. ' ' .. ARGV[index + 2]
    call('HSET', names, key, known)
    call('ZADD', taken, position, key)
  end
  if string.match(known, '^%d+ (%x+)') == owner then
    own[#own + 1] = {key, string.match(known, '^%d+')}
  end
end
return {1, own}
