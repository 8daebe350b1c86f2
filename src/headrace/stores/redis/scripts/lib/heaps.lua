-- Heaps: what stands first by tag, place and id is on top.
local function stands_before(one, other)
  if one.tag ~= other.tag then
    return one.tag < other.tag
  elseif one.place ~= other.place then
    return one.place < other.place
  end
  return one.id < other.id
end

local function push_on(heap, one)
  local at = #heap + 1
  while at > 1 do
    local above = math.floor(at / 2)
    if not stands_before(one, heap[above]) then
      break
    end
    heap[at] = heap[above]
    at = above
  end
  heap[at] = one
end

-- Remove and return what is on top.
local function pop_of(heap)
  local top, last = heap[1], table.remove(heap)
  local size, at = #heap, 1
  while size > 0 do
    local below = 2 * at
    if below < size and stands_before(heap[below + 1], heap[below]) then
      below = below + 1
    end
    if below > size or not stands_before(heap[below], last) then
      heap[at] = last
      break
    end
    heap[at] = heap[below]
    at = below
  end
  return top
end
