-- Walks over the shares of a class, in the order of `fresh` or `tagged`: each share is read once, however many candidates
-- are looked for, and left where nothing of it can start. What was read and may start is in a heap, by a place that its
-- first job does not stand before; it is asked for that job when it comes to the top.
-- include heaps, shares
local SMALL_PAGE, LARGE_PAGE = 8, 64
-- Shares of one tag that are compared by the places of their first jobs. Once a tag is reached they stand in order.
local MAX_TIES = 100
local NOWHERE = -math.huge
local walks = {}

local function walk_over(key, tagged)
  local walk = walks[key]
  if not walk then
    -- `known` are all shares that were read and stand there, `read` says how many; `live` counts those in the heap, by tag.
    walk = {key = key, tagged = tagged, heap = {}, known = {}, read = 0, live = {}, page = SMALL_PAGE}
    walks[key] = walk
  end
  return walk
end

-- Take note of a share that stands at a score. A tag says nothing about the place of a job: that is asked for later.
local function enter_walk(walk, member, score)
  local share = {fair = member, tag = score, place = NOWHERE, id = ''}
  if not walk.tagged then
    share = {fair = string.sub(member, 34), tag = 0, place = score, id = string.sub(member, 1, 32)}
  end
  walk.known[share.fair], walk.read = share, walk.read + 1
  walk.live[share.tag] = (walk.live[share.tag] or 0) + 1
  push_on(walk.heap, share)
  return share
end

local function leave_walk(walk, share)
  if not share.left then
    share.left = true
    walk.live[share.tag] = walk.live[share.tag] - 1
  end
end

local function read_on(walk, count)
  local page = call('ZRANGE', walk.key, walk.read, walk.read + count - 1, 'WITHSCORES')
  for index = 1, #page, 2 do
    local share = enter_walk(walk, page[index], tonumber(page[index + 1]))
    -- What was not read stands behind this.
    walk.reach = {tag = share.tag, place = share.place, id = share.id}
  end
  walk.ended = #page < 2 * count
  walk.page = math.min(2 * walk.page, LARGE_PAGE)
end

-- How many more shares have to be read before it is known that nothing stands before this one.
local function unread_before(walk, share)
  if walk.ended then
    return 0
  elseif not walk.reach then
    return walk.page
  elseif not walk.tagged then
    return stands_before(walk.reach, share) and walk.page or 0
  end
  return share.tag < walk.reach.tag and 0 or math.max(0, math.min(walk.page, MAX_TIES - walk.live[share.tag]))
end

-- The first share whose job may start as far as is known; nil where none may. `ask` returns the first job of a share
-- (nil: it has none), `holds` whether that is still so.
local function first_of_walk(walk, ask, holds)
  local heap = walk.heap
  while heap[1] or not walk.ended do
    local share = heap[1]
    if not share then
      read_on(walk, walk.page)
    elseif share.left then
      pop_of(heap)
    elseif share.job and holds(share.job) then
      local unread = unread_before(walk, share)
      if unread == 0 then
        return share
      end
      read_on(walk, unread)
    else
      pop_of(heap)
      local job = ask(share.fair)
      -- Asking may have moved it; then it was entered anew.
      if job and not share.left then
        share.job, share.place, share.id = job, job.place, job.id
        push_on(heap, share)
      else
        leave_walk(walk, share)
      end
    end
  end
end

local function forget_in_walk(walk, fair)
  local share = walk.known[fair]
  if share then
    leave_walk(walk, share)
    walk.known[fair], walk.read = nil, walk.read - 1
  end
end

-- A share was settled: it stands as `member` in `key` (nil: nowhere), perhaps among what was read.
local function move_in_walk(walk, fair, key, member, score)
  forget_in_walk(walk, fair)
  if key == walk.key and call('ZRANK', key, member) <= walk.read then
    enter_walk(walk, member, tonumber(score))
  end
end
