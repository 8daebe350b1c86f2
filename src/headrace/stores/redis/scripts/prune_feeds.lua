#!lua flags=allow-oom
-- Remove older entries of feeds, from the first of each on, and feeds with the last of theirs. Arguments: session and term
-- of the leader or empty, retention, limit. Returns how many.
-- Keys: feeds, feed, feed_keys. Complexity: O(N log M).
-- include feeds, terms
if not leads(ARGV[2], ARGV[3]) then
  return 0
end
local before, limit, removed = NOW - ARGV[4], tonumber(ARGV[5]), 0
-- So many entries are read at once: they may be large.
local PAGE = 10

-- Remove the oldest entries of a feed, but for young ones; return how many, and the time of the first that stays.
local function prune_page(feed, most)
  local page = call('XRANGE', feed_key(feed), '-', '+', 'COUNT', most + 1)
  for index, entry in ipairs(page) do
    local fields = entry[2]
    if index > most or tonumber(fields[8]) > before then
      return index - 1, fields[8]
    end
    call('XDEL', feed_key(feed), entry[1])
    if fields[6] ~= '' then
      call('HDEL', feed_keys(feed), fields[6])
    end
  end
  return #page, nil
end

for _, feed in ipairs(call('ZRANGE', ROOT .. 'feeds', '-inf', text(before), 'BYSCORE', 'LIMIT', 0, limit)) do
  local count, kept
  repeat
    count, kept = prune_page(feed, math.min(PAGE, limit - removed))
    removed = removed + count
  until not kept or tonumber(kept) > before or removed >= limit
  if kept then
    call('ZADD', ROOT .. 'feeds', kept, feed)
  else
    call('DEL', feed_key(feed), feed_keys(feed))
    call('ZREM', ROOT .. 'feeds', feed)
  end
  if removed >= limit then
    break
  end
end
return removed
