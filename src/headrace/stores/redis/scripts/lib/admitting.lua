-- Choosing who is admitted: the share with the smallest start tag, among equal ones that whose first job comes first; of
-- a share the lane whose first job comes first. What is held up once stays so until the end: starting takes room only.
-- include shares, keeper, claiming
local PAGE = 20
-- Shares whose first jobs stand at the same place (inserted together) that are compared by the ids of these.
local MAX_TIES = 100
local stuck, spent_shares, stuck_classes, cancelling = {}, {}, {}, {}

-- The first job of a lane, as `keeper` takes it; ghosts before it are put aside. Nil: the lane is empty.
local function first_job(queue, gate)
  while true do
    local head = call('ZRANGE', lane_key(queue, gate), 0, 0, 'WITHSCORES')
    if not head[1] then
      return nil
    end
    local row = call('HMGET', job_key(head[1]), 'batch', 'cost', 'attempt')
    if row[1] and cancelling[row[1]] == nil then
      cancelling[row[1]] = call('SISMEMBER', ROOT .. 'batches:cancelling', row[1]) == 1
    end
    if not (row[1] and cancelling[row[1]]) then
      return {id = head[1], place = tonumber(head[2]), queue = queue, gate = gate, cost = tonumber(row[2] or 1),
        attempt = tonumber(row[3] or 0)}
    end
    call('ZREM', lane_key(queue, gate), head[1])
    later('ZADD', ROOT .. 'ghosts:' .. queue, head[2], head[1])
    settle_lane(queue, gate)
  end
end

-- The first job of the lanes of a share that are not stuck; nil when all are.
local function first_of_share(queue, class, fair)
  local key, offset = lanes_key(queue, class, fair), 0
  while true do
    local page = call('ZRANGE', key, offset, offset + PAGE - 1)
    if #page == 0 then
      return nil
    end
    for _, member in ipairs(page) do
      local gate_text = string.sub(member, 34)
      if not stuck[gate_text] then
        local job = first_job(queue, gate_of(gate_text))
        if job and string.sub(member, 1, 32) == job.id then
          return job
        end
        -- Ghosts went: the lane stands elsewhere now, and so does the page.
        call('ZREM', key, member)
        call('HDEL', ROOT .. 'heads:' .. queue, gate_text)
        settle_lane(queue, gate_of(gate_text))
        return first_of_share(queue, class, fair)
      end
    end
    offset = offset + PAGE
  end
end

-- Whether the job of one candidate comes before that of another one.
local function comes_before(one, other)
  return one.place < other.place or one.place == other.place and one.id < other.id
end

-- The best candidate among the shares of a class that wait at the virtual time (`fresh`, by place), or, with `by_tag`,
-- that are ahead of it; with its score. The score of a fresh share is the place of its first job, which may be stuck.
local function best_of(queue, class, key, by_tag)
  local offset, best, best_score, ties = 0, nil, nil, 0
  while true do
    local page = call('ZRANGE', key, offset, offset + PAGE - 1, 'WITHSCORES')
    if #page == 0 then
      return best, best_score
    end
    for index = 1, #page, 2 do
      local fair, score = page[index], tonumber(page[index + 1])
      if best and (score > (by_tag and best_score or best.place) or ties >= MAX_TIES) then
        return best, best_score
      end
      local name = class .. ':' .. fair
      local job = not spent_shares[name] and first_of_share(queue, class, fair)
      if not job then
        spent_shares[name] = true
      elseif not best or comes_before(job, best) then
        best, best_score = job, score
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
      local job, tag = best_of(queue, class, fresh), virtual_of(queue)
      if not job then
        job, tag = best_of(queue, class, tagged, true)
      end
      if job and (not best or tag < best_tag or tag == best_tag and comes_before(job, best)) then
        best, best_tag = job, tag
      end
    end
  end
  return best, best_tag
end

-- Move the tag of a job's share, and the virtual time, past the job; then shares that this time reached are fresh.
local function charge_share(job, tag, classes)
  local queue, fair = job.queue, job.gate.fair
  local weight = tonumber(fair ~= '' and call('HGET', ROOT .. 'weights:' .. queue, fair) or 1)
  local finish = exactly(tag + job.cost / weight)
  if tag > virtual_of(queue) then
    virtuals[queue] = tag
    call('SET', ROOT .. 'virtual:' .. queue, exactly(tag))
    call('ZREMRANGEBYSCORE', ROOT .. 'tags:' .. queue, '-inf', exactly(tag))
  end
  call('ZADD', ROOT .. 'tags:' .. queue, finish, fair)
  for _, class in ipairs(classes) do
    local fresh, tagged = class_keys(queue, class)
    for _, reached in ipairs(call('ZRANGE', tagged, '-inf', exactly(tag), 'BYSCORE')) do
      settle_share(queue, class, reached)
    end
    if call('ZSCORE', fresh, fair) or call('ZSCORE', tagged, fair) then
      settle_share(queue, class, fair)
    end
  end
end
