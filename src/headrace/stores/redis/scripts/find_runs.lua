#!lua flags=no-writes
-- Return the newest runs of each of some states. Arguments: workflow or empty, how many of each, states.
-- Returns {created_at, id, …}. Keys: runs. Complexity: O(log M + N).
-- include keys
local found = {}
for index = 4, #ARGV do
  local key = ROOT .. 'runs:' .. ARGV[index] .. (ARGV[2] ~= '' and ':' .. ARGV[2] or '')
  local page = call('ZRANGE', key, 0, ARGV[3] - 1, 'REV', 'WITHSCORES')
  for place = 1, #page, 2 do
    found[#found + 1] = page[place + 1]
    found[#found + 1] = page[place]
  end
end
return found
