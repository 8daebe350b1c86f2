-- Claiming the first ready jobs of a queue that may start now.
-- include running, ranks
local CLAIMED = {'task', 'args', 'attempt', 'failures', 'crashes', 'max_attempts', 'timeout', 'cancel', 'batch',
  'ordinal', 'sort_at', 'run', 'node'}
-- Ghosts (jobs of batches being cancelled) that one claim puts aside at most; where it finds nothing else, it answers 1.
local MAX_GHOSTS = 500

local function paused(queue)
  return call('HEXISTS', ROOT .. 'queue:' .. queue, 'paused') == 1
end

-- Remove and return up to `limit` ids of a set of ready jobs, in order, behind a place if one is given.
local function pop_ready(key, limit, after_at, after_id)
  local first = 0
  if after_at ~= '' then
    local head = call('ZRANGE', key, 0, 0, 'WITHSCORES')
    if head[1] and (tonumber(head[2]) < tonumber(after_at) or head[2] == after_at and head[1] <= after_id) then
      first = rank_of(key, after_at, after_id)
      first = first + (call('ZRANGE', key, first, first)[1] == after_id and 1 or 0)
    end
  end
  local ids = call('ZRANGE', key, first, first + limit - 1)
  if #ids > 0 then
    call_in_parts('ZREM', key, ids)
  end
  return ids
end

local cancelling = {}
local function is_ghost(batch)
  if batch and cancelling[batch] == nil then
    cancelling[batch] = call('SISMEMBER', ROOT .. 'batches:cancelling', batch) == 1
  end
  return batch and cancelling[batch]
end

-- Start a job that was taken from its place; returns its row, or nil for a ghost.
local function start_claimed(id, queue, session, gate)
  local key = job_key(id)
  local row = call('HMGET', key, unpack(CLAIMED))
  if is_ghost(row[9]) then
    later('ZADD', ROOT .. 'ghosts:' .. queue, row[11], id)
    return nil
  end
  row[3] = (row[3] or 0) + 1
  call('HSET', key, 'state', 'running', 'session', session, 'attempt', row[3], 'started_at', NOW_TEXT)
  start(id, {queue = queue, timeout = row[7], gate = gate}, session)
  row[#CLAIMED + 1] = id
  return row
end

local function claim_jobs(session, queue, limit, after_at, after_id)
  local rows, ghosts = {}, 0
  if limit < 1 or not alive(session) or paused(queue) or call('SISMEMBER', ROOT .. 'gated', queue) == 1 then
    return rows
  end
  while #rows < limit and ghosts < MAX_GHOSTS do
    local ids = pop_ready(ROOT .. 'ready:' .. queue, math.min(limit - #rows, MAX_GHOSTS - ghosts), after_at, after_id)
    if #ids == 0 then
      break
    end
    for _, id in ipairs(ids) do
      local row = start_claimed(id, queue, session)
      if row then
        rows[#rows + 1] = row
      else
        ghosts = ghosts + 1
      end
    end
  end
  if #rows > 0 then
    call('SADD', ROOT .. 'holders', session .. ':' .. queue)
  elseif ghosts >= MAX_GHOSTS then
    return 1
  end
  return rows
end
