#!lua flags=no-writes
-- Return the newest runs of each of some states. Arguments: workflow or empty, how many of each, the place behind which
-- to begin (created_at and id, or empty), states. Returns {created_at, id, …}. Keys: runs. Complexity: O(log M + N + T),
-- T runs of the time of that place.
-- include keys
-- Those of one time stand by their ids, backwards.
local function place_behind(key)
  if ARGV[4] == '' then
    return 0
  end
  local place = call('ZCOUNT', key, '(' .. ARGV[4], '+inf')
  for _, id in ipairs(call('ZRANGE', key, ARGV[4], ARGV[4], 'BYSCORE', 'REV')) do
    if id >= ARGV[5] then
      place = place + 1
    end
  end
  return place
end

local found = {}
for index = 6, #ARGV do
  local key = ROOT .. 'runs:' .. ARGV[index] .. (ARGV[2] ~= '' and ':' .. ARGV[2] or '')
  local first = place_behind(key)
  local page = call('ZRANGE', key, first, first + ARGV[3] - 1, 'REV', 'WITHSCORES')
  for place = 1, #page, 2 do
    found[#found + 1] = page[place + 1]
    found[#found + 1] = page[place]
  end
end
return found
