-- Feeds: a stream each, whose ids are NUMBER-0, and a hash that has the numbers of keys. `feeds` has the time of the oldest
-- entry of each, which appends leave alone. A feed has an entry as long as it is there: the newest goes last.
-- include keys
local function feed_key(feed)
  return ROOT .. 'feed:' .. feed
end

local function feed_keys(feed)
  return ROOT .. 'feed_keys:' .. feed
end

local function feed_end(feed)
  local newest = call('XREVRANGE', feed_key(feed), '+', '-', 'COUNT', 1)[1]
  return newest and tonumber(string.match(newest[1], '^%d+')) or 0
end
