-- Choosing who is admitted: the share with the smallest start tag, among equal ones that whose first job comes first; of
-- a share the lane whose first job comes first. What is held up once stays so until the end: starting takes room only.
-- include shares, keeper, claiming
local PAGE = 8
-- Shares of one tag that are compared by the places of their first jobs. Once a tag is reached they stand in order.
local MAX_TIES = 100
local stuck, spent_shares, stuck_classes = {}, {}, {}
-- By share: how many of its first lanes are stuck. What starts or is put aside stands behind them and moves on.
local passed = {}

-- Ghosts that one admission puts aside at most; where there are more, it says that it has not seen everything.
local GHOSTS_AT_ONCE, ghosts = 1000, 0

-- Put aside the ghosts at the head of a lane; one that may have more of them is stuck for this time.
local function put_aside(queue, gate)
  local key, gone = lane_key(queue, gate), {}
  local rest = call('ZRANGE', key, 0, GHOSTS_AT_ONCE - ghosts - 1, 'WITHSCORES')
  for index = 1, #rest, 2 do
    if not is_ghost(call('HGET', job_key(rest[index]), 'batch')) then
      break
    end
    gone[#gone + 1] = rest[index]
    later('ZADD', ROOT .. 'ghosts:' .. queue, rest[index + 1], rest[index])
  end
  ghosts = ghosts + #gone
  if #gone > 0 then
    call_in_parts('ZREM', key, gone)
    settle_lane(queue, gate)
  end
  stuck[gate.text] = ghosts >= GHOSTS_AT_ONCE or #gone == 0 or nil
end

-- What `keeper` takes: the first job of a lane. Nil: it is a ghost, and the lane stands elsewhere by now, or is stuck.
local function first_job(queue, gate, id, place)
  local row = call('HMGET', job_key(id), 'batch', 'cost', 'attempt')
  if is_ghost(row[1]) then
    if ghosts < GHOSTS_AT_ONCE then
      put_aside(queue, gate)
    else
      stuck[gate.text] = true
    end
    return nil
  end
  return {id = id, place = tonumber(place), queue = queue, gate = gate, cost = tonumber(row[2] or 1),
    attempt = tonumber(row[3] or 0)}
end

-- Whether a job more may run under the key of a gate; where none may, no time brings one, and nobody need look closer.
local function key_is_free(queue, gate)
  local cap = key_cap(queue, gate)
  return not cap or key_usage(queue, gate) < cap
end

-- The first job of the lanes of a share that are not stuck; nil when all are.
local function first_of_share(queue, class, fair)
  local key = lanes_key(queue, class, fair)
  local offset = passed[key] or 0
  while true do
    local page = call('ZRANGE', key, offset, offset + PAGE - 1, 'WITHSCORES')
    if #page == 0 then
      return nil
    end
    for index = 1, #page, 2 do
      local id, gate_text = string.sub(page[index], 1, 32), string.sub(page[index], 34)
      if not stuck[gate_text] and key_is_free(queue, gate_of(gate_text)) then
        local job = first_job(queue, gate_of(gate_text), id, page[index + 1])
        if not job then
          -- The page has moved with the lane.
          break
        end
        passed[key] = offset
        return job
      end
      offset = offset + 1
    end
  end
end

-- Whether the job of one candidate comes before that of another one.
local function comes_before(one, other)
  return one.place < other.place or one.place == other.place and one.id < other.id
end

-- The first job of a share that is not spent; nil, and the share is spent.
local function job_of_share(queue, class, fair)
  local name = class .. ':' .. fair
  if spent_shares[name] then
    return nil
  end
  local job = first_of_share(queue, class, fair)
  spent_shares[name] = not job
  return job
end

-- The first job among the shares of a class that wait at the virtual time. A share stands at the place of its first job;
-- where that is stuck, another one may come before its next.
local function best_fresh(queue, class, fresh)
  local offset, best = 0, nil
  while true do
    local page = call('ZRANGE', fresh, offset, offset + PAGE - 1, 'WITHSCORES')
    if #page == 0 then
      return best
    end
    for index = 1, #page, 2 do
      local id, place = string.sub(page[index], 1, 32), tonumber(page[index + 1])
      if best and (best.place < place or best.place == place and best.id <= id) then
        return best
      end
      local job = job_of_share(queue, class, string.sub(page[index], 34))
      if job and (not best or comes_before(job, best)) then
        best = job
      end
    end
    offset = offset + PAGE
  end
end

-- The first job among the shares of a class with the lowest tag ahead of the virtual time; and that tag.
local function best_tagged(queue, class, tagged)
  local offset, best, best_tag, ties = 0, nil, nil, 0
  while true do
    local page = call('ZRANGE', tagged, offset, offset + PAGE - 1, 'WITHSCORES')
    if #page == 0 then
      return best, best_tag
    end
    for index = 1, #page, 2 do
      local tag = tonumber(page[index + 1])
      if best and (tag > best_tag or ties >= MAX_TIES) then
        return best, best_tag
      end
      local job = job_of_share(queue, class, page[index])
      if job and (not best or comes_before(job, best)) then
        best, best_tag = job, tag
      end
      ties = ties + (job and 1 or 0)
    end
    offset = offset + PAGE
  end
end

-- The next candidate of a queue: a job and its start tag; nil when all that waits is held up.
local function next_candidate(queue, classes)
  local best, best_tag
  for _, class in ipairs(classes) do
    if not stuck_classes[class] then
      local fresh, tagged = class_keys(queue, class)
      local job, tag = best_fresh(queue, class, fresh), virtual_of(queue)
      if not job then
        job, tag = best_tagged(queue, class, tagged)
      end
      if job and (not best or tag < best_tag or tag == best_tag and comes_before(job, best)) then
        best, best_tag = job, tag
      end
    end
  end
  return best, best_tag
end

local function lower_scores(key, by)
  local scores, lowered = call('ZRANGE', key, 0, -1, 'WITHSCORES'), {}
  for index = 1, #scores, 2 do
    lowered[index], lowered[index + 1] = exactly(scores[index + 1] - by), scores[index]
  end
  call_in_parts('ZADD', key, lowered)
end

-- Take a high virtual time off all tags: only differences say anything, and large numbers would soon be all the same.
local function lower_tags(queue, classes)
  local time = virtual_of(queue)
  if time >= HIGH_TIME then
    lower_scores(ROOT .. 'tags:' .. queue, time)
    for _, class in ipairs(classes) do
      local _, tagged = class_keys(queue, class)
      lower_scores(tagged, time)
    end
    virtuals[queue] = 0
    call('SET', ROOT .. 'virtual:' .. queue, 0)
  end
end

-- Let the virtual time of a queue be no less than `time`: tags behind it are gone, and shares that it reached are fresh.
local function reach(queue, classes, time)
  if time > virtual_of(queue) then
    virtuals[queue] = time
    call('SET', ROOT .. 'virtual:' .. queue, exactly(time))
    call('ZREMRANGEBYSCORE', ROOT .. 'tags:' .. queue, '-inf', exactly(time))
  end
  for _, class in ipairs(classes) do
    local _, tagged = class_keys(queue, class)
    for _, reached in ipairs(call('ZRANGE', tagged, '-inf', exactly(time), 'BYSCORE')) do
      settle_share(queue, class, reached)
    end
  end
end

-- Move the tag of a job's share, and the virtual time, past the job.
local function charge_share(job, tag, classes)
  local queue, fair = job.queue, job.gate.fair
  local weight = tonumber(fair ~= '' and call('HGET', ROOT .. 'weights:' .. queue, fair) or 1)
  call('ZADD', ROOT .. 'tags:' .. queue, exactly(tag + job.cost / weight), fair)
  reach(queue, classes, tag)
  for _, class in ipairs(classes) do
    local _, _, firsts = class_keys(queue, class)
    if call('HEXISTS', firsts, fair) == 1 then
      settle_share(queue, class, fair)
    end
  end
end

-- Whether a job waits at the head of a lane, behind the ghosts that stand there.
local function lane_waits(queue, gate, id)
  if not is_ghost(call('HGET', job_key(id), 'batch')) or ghosts >= GHOSTS_AT_ONCE then
    return true
  end
  put_aside(queue, gate)
  return call('HEXISTS', ROOT .. 'heads:' .. queue, gate.text) == 1
end

local function anything_waits(queue)
  local cursor = '0'
  repeat
    local page = call('HSCAN', ROOT .. 'heads:' .. queue, cursor)
    for index = 1, #page[2], 2 do
      if lane_waits(queue, gate_of(page[2][index]), string.match(page[2][index + 1], ' (.*)$')) then
        return true
      end
    end
    cursor = page[1]
  until cursor == '0'
  return false
end

-- Where nothing waits the busy period of a queue is over: its time becomes the largest finish tag, and no tag is left.
local function rest(queue, classes)
  local last = call('ZRANGE', ROOT .. 'tags:' .. queue, -1, -1, 'WITHSCORES')
  if last[2] and not anything_waits(queue) then
    reach(queue, classes, tonumber(last[2]))
  end
end
