#!lua
-- Append entries to a feed, but for those whose key it has. Arguments: feed, then type, JSON text and key, or empty, of
-- each entry. Returns {how many were new, numbers in the order of the arguments}.
-- Keys: feed, feed_keys, feeds. Complexity: O(N).
-- include feeds
local feed, numbers, count = ARGV[2], {}, 0
local last = feed_end(feed)
if last == 0 then
  call('ZADD', ROOT .. 'feeds', NOW_TEXT, feed)
end
for index = 3, #ARGV, 3 do
  local key = ARGV[index + 2]
  local number = key ~= '' and tonumber(call('HGET', feed_keys(feed), key) or nil)
  if not number then
    count = count + 1
    number = last + count
    call('XADD', feed_key(feed), text(number) .. '-0', 'type', ARGV[index], 'data', ARGV[index + 1], 'key', key,
      'at', NOW_TEXT)
    if key ~= '' then
      call('HSET', feed_keys(feed), key, number)
    end
  end
  numbers[#numbers + 1] = number
end
return {count, numbers}
