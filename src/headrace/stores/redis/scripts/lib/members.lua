-- Walks over the items of a batch: first those that live, then those that ended. An item that ends meanwhile moves from
-- the first part to the end of the second, so that no walk misses it.
-- include keys

-- Return ids of a part, `live` or `ended`, behind a cursor, and the next cursor, empty at the end.
local function members_of(batch, part, cursor, most)
  if part == 'live' then
    local page = call('SSCAN', batch_key(batch, 'live'), cursor, 'COUNT', most)
    return page[2], page[1] ~= '0' and page[1] or ''
  end
  local list = call('ZRANGE', batch_key(batch, 'ended'), '(' .. cursor, '+inf', 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
  local ids = {}
  for index = 1, #list, 2 do
    ids[#ids + 1] = list[index]
  end
  return ids, list[#list] or ''
end
