-- Who waits at the gate of a queue, in the order in which it looks: shares (fair keys) by start tag, lanes of a share by
-- the place of their first job. Derived from the lanes, whenever one of them changed at its head. Per class of gates:
-- `lanes` holds "ID GATE" by the place of each lane's first job, `fresh` "ID SHARE" of the shares whose tag the virtual
-- time has reached, by the place of their first job, `tagged` the other shares, by their finish tags. `heads` and `firsts`
-- remember which of these stand for a lane or a share.
-- include bulk, gates
local function lane_key(queue, gate)
  if gate.text == OPEN_GATE then
    return ROOT .. 'ready:' .. queue
  end
  return ROOT .. 'lane:' .. queue .. ':' .. gate.text
end

local function lanes_key(queue, class, fair)
  return ROOT .. 'lanes:' .. queue .. ':' .. class .. ':' .. fair
end

local function class_keys(queue, class)
  local name = queue .. ':' .. class
  return ROOT .. 'fresh:' .. name, ROOT .. 'tagged:' .. name, ROOT .. 'firsts:' .. name
end

local virtuals = {}
local function virtual_of(queue)
  virtuals[queue] = virtuals[queue] or tonumber(call('GET', ROOT .. 'virtual:' .. queue) or 0)
  return virtuals[queue]
end

-- What other pieces want to know of a share that was settled: its class and fair key, the set where it stands now (nil:
-- in none), as which member and at which score.
local after_settling
-- Put a share of a class where its tag and its first job say.
local function settle_share(queue, class, fair)
  local fresh, tagged, firsts = class_keys(queue, class)
  local first = call('ZRANGE', lanes_key(queue, class, fair), 0, 0, 'WITHSCORES')
  local tag = first[1] and call('ZSCORE', ROOT .. 'tags:' .. queue, fair)
  local ahead = tag and tonumber(tag) > virtual_of(queue)
  local before = call('HGET', firsts, fair)
  local now = first[1] and not ahead and string.sub(first[1], 1, 33) .. fair or false
  if before and before ~= now then
    call('ZREM', fresh, before)
    call('HDEL', firsts, fair)
  end
  local stands, member, score
  if now then
    call('ZREM', tagged, fair)
    call('ZADD', fresh, first[2], now)
    call('HSET', firsts, fair, now)
    stands, member, score = fresh, now, first[2]
  elseif ahead then
    call('ZADD', tagged, tag, fair)
    stands, member, score = tagged, fair, tag
  else
    call('ZREM', tagged, fair)
  end
  if stands then
    call('SADD', ROOT .. 'classes:' .. queue, class)
  elseif call('EXISTS', fresh, tagged) == 0 then
    call('SREM', ROOT .. 'classes:' .. queue, class)
  end
  if after_settling then
    after_settling(queue, class, fair, stands, member, score)
  end
end

-- Take note of the first job of a lane, if it is another than before.
local function settle_lane(queue, gate)
  local heads = ROOT .. 'heads:' .. queue
  local first = call('ZRANGE', lane_key(queue, gate), 0, 0, 'WITHSCORES')
  local head, before = first[1] and first[2] .. ' ' .. first[1] or false, call('HGET', heads, gate.text)
  if head == before then
    return
  end
  local lanes = lanes_key(queue, gate.class, gate.fair)
  if before then
    call('ZREM', lanes, string.match(before, ' (.*)$') .. ' ' .. gate.text)
  end
  if head then
    call('ZADD', lanes, first[2], first[1] .. ' ' .. gate.text)
    call('HSET', heads, gate.text, head)
  else
    call('HDEL', heads, gate.text)
  end
  settle_share(queue, gate.class, gate.fair)
end

local touched = {}
local function touch_lane(queue, gate_text)
  touched[queue .. ':' .. gate_text] = {queue, gate_text}
end

function after_flush()
  for _, lane in pairs(touched) do
    settle_lane(lane[1], gate_of(lane[2]))
  end
  touched = {}
end
