-- Places in lists that are kept by when their members were made.

-- Return how many members come before those made before a place, newest first; of a member that is gone, how many are
-- newer: those made at the same moment come again.
local function place_before(key, made_at, id)
  if made_at == '' then
    return 0
  end
  local rank = call('ZREVRANK', key, id)
  if rank then
    return rank + 1
  end
  return call('ZCOUNT', key, '(' .. made_at, '+inf')
end
