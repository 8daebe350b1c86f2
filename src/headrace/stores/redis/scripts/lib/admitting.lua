-- Choosing who is admitted: the share with the smallest start tag, among equal ones that whose first job comes first; of
-- a share the lane whose first job comes first. What is held up once stays so until the end: starting takes room only.
-- include walking, keeper, claiming
local PAGE = 8
local stuck, stuck_classes = {}, {}
-- By share: how many of its first lanes are stuck, or that it is spent: all of them are. What starts or is put aside stands
-- behind them and moves on.
local passed, SPENT = {}, -1

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

-- The first job of a lane is a ghost: the lane stands elsewhere afterwards, or is stuck.
local function meet_ghost(queue, gate)
  if ghosts < GHOSTS_AT_ONCE then
    put_aside(queue, gate)
  else
    stuck[gate.text] = true
  end
end

-- What `keeper` takes: the first job of a lane, from its row.
local function as_job(queue, gate_text, id, place, row)
  return {id = id, place = tonumber(place), queue = queue, gate = gate_of(gate_text), cost = tonumber(row[2] or 1),
    attempt = tonumber(row[3] or 0)}
end

-- Whether as much runs under the key of a gate as may; no time brings room, and nobody need look closer. Parsing a gate
-- costs more than the rest: a key is read from its text, where a quote that is none of JSON's own has a backslash.
local function key_is_full(queue, gate_text)
  local from = string.find(gate_text, '"key":"', 1, true)
  if not from then
    return false
  end
  local key, behind = string.match(gate_text, '^([^"\\]*)"()', from + 7)
  local gate = key and {key = key, key_limit = string.match(gate_text, '^,"key_limit":(%d+)', behind)} or gate_of(gate_text)
  local cap = key_cap(queue, gate)
  return cap and key_usage(queue, gate) >= cap
end

-- By class: the least cost that was found to lack units which somebody reserved. Levels only fall: whoever costs as much
-- lacks them too, and nobody need ask.
local too_dear = {}

local function note_dear(job)
  -- Behind a breaker a later job may be one to refuse, which needs no units.
  if #job.gate.breakers == 0 then
    too_dear[job.gate.class] = math.min(job.cost, too_dear[job.gate.class] or job.cost)
  end
end

-- Whether a job that was the first of its share still is, and nothing known holds it up.
local function may_start(queue, job)
  return not stuck[job.gate.text] and job.cost < (too_dear[job.gate.class] or math.huge)
    and not key_is_full(queue, job.gate.text)
end

-- The first job of the lanes of a share that are not stuck; nil when all are, and the share is spent.
local function first_of_share(queue, class, fair)
  local key = lanes_key(queue, class, fair)
  local offset, dear = passed[key] or 0, too_dear[class] or math.huge
  while offset ~= SPENT do
    local page, moved = call('ZRANGE', key, offset, offset + PAGE - 1, 'WITHSCORES'), false
    for index = 1, #page, 2 do
      local id, gate_text = string.sub(page[index], 1, 32), string.sub(page[index], 34)
      if not stuck[gate_text] and not key_is_full(queue, gate_text) then
        local row = call('HMGET', job_key(id), 'batch', 'cost', 'attempt')
        if is_ghost(row[1]) then
          -- The page may move with the lane.
          meet_ghost(queue, gate_of(gate_text))
          moved = true
          break
        elseif tonumber(row[2] or 1) < dear then
          passed[key] = offset
          return as_job(queue, gate_text, id, page[index + 1], row)
        end
      end
      offset = offset + 1
    end
    if #page < 2 * PAGE and not moved then
      passed[key], offset = SPENT, SPENT
    end
  end
end

-- The first job of a class that may start as far as is known, and its start tag. Shares that the virtual time has reached
-- come before all others.
local function first_of_class(queue, class)
  local fresh, tagged = class_keys(queue, class)
  local function ask(fair)
    return first_of_share(queue, class, fair)
  end
  local function holds(job)
    return may_start(queue, job)
  end
  local share = first_of_walk(walk_over(fresh), ask, holds)
  if share then
    return share.job, virtual_of(queue)
  end
  share = first_of_walk(walk_over(tagged, true), ask, holds)
  if share then
    return share.job, share.tag
  end
end

-- The classes that may have a candidate, in a heap by a place that it does not stand before; and by name those in it.
local line, in_line

local function line_up(class)
  in_line[class] = {class = class, tag = NOWHERE, place = NOWHERE, id = ''}
  push_on(line, in_line[class])
end

-- The next candidate of a queue: a job and its start tag; nil when all that waits is held up.
local function next_candidate(queue, classes)
  if not line then
    line, in_line = {}, {}
    for _, class in ipairs(classes) do
      line_up(class)
    end
  end
  while line[1] do
    local one = pop_of(line)
    if not one.left and not stuck_classes[one.class] then
      in_line[one.class] = nil
      local job, tag = first_of_class(queue, one.class)
      if job then
        one.tag, one.place, one.id = tag, job.place, job.id
        in_line[one.class] = one
        push_on(line, one)
      end
      if job and line[1] == one then
        return job, tag
      end
    end
  end
end

-- A share that moved may bring its class forward.
local function bring_forward(class)
  local one = line and in_line[class]
  if one and one.tag ~= NOWHERE then
    one.left = true
    line_up(class)
  end
end

function after_settling(queue, class, fair, key, member, score)
  local fresh, tagged = class_keys(queue, class)
  for _, walk in ipairs({walks[fresh] or false, walks[tagged] or false}) do
    if walk then
      move_in_walk(walk, fair, key, member, score)
    end
  end
  bring_forward(class)
end

-- Settle the shares of a class that the virtual time has reached: as `settle_share`, but all at once.
local function settle_reached(queue, class, reached)
  local fresh, tagged, firsts = class_keys(queue, class)
  local walk, places, members = walks[fresh], {}, {}
  if walk and not (walk.ended and walk.read > 0) then
    -- It has read nothing, or the class is stuck.
    walk, walks[fresh] = nil, nil
  end
  for _, fair in ipairs(reached) do
    local first = call('ZRANGE', lanes_key(queue, class, fair), 0, 0, 'WITHSCORES')
    local member = string.sub(first[1], 1, 33) .. fair
    places[#places + 1], places[#places + 2] = first[2], member
    members[#members + 1], members[#members + 2] = fair, member
    if walk then
      enter_walk(walk, member, tonumber(first[2]))
    end
    if walks[tagged] then
      forget_in_walk(walks[tagged], fair)
    end
  end
  call_in_parts('ZREM', tagged, reached)
  call_in_parts('ZADD', fresh, places)
  call_in_parts('HSET', firsts, members)
  bring_forward(class)
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
  if time <= virtual_of(queue) then
    return
  end
  virtuals[queue] = time
  call('SET', ROOT .. 'virtual:' .. queue, exactly(time))
  call('ZREMRANGEBYSCORE', ROOT .. 'tags:' .. queue, '-inf', exactly(time))
  for _, class in ipairs(classes) do
    local _, tagged = class_keys(queue, class)
    local reached = call('ZRANGE', tagged, '-inf', exactly(time), 'BYSCORE')
    if #reached > 0 then
      settle_reached(queue, class, reached)
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
