-- How many members of a sorted set stand before a place (score, member), whether that member is there or not.
-- include keys
local function rank_of(key, score, member)
  local low, high = call('ZCOUNT', key, '-inf', '(' .. score), call('ZCOUNT', key, '-inf', score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if call('ZRANGE', key, middle, middle)[1] < member then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end
