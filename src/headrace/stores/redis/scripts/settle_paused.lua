#!lua flags=allow-oom
-- Hold ready jobs of a paused batch, where its walk over the live ones stands, or let go of held ones of one that is not,
-- in the order of their places. Arguments: batch, limit, session and term of the leader, or empty. Returns {how many,
-- 1 where there are no more}; {-1, 1}: no batch.
-- Keys: batch, batches, job, ready, lane, scheduled, parked, keys. Complexity: O(N log M).
-- include holding, terms
local batch, limit = ARGV[2], tonumber(ARGV[3])

local function read_waiting(id)
  local row = call('HMGET', job_key(id), 'state', 'queue', 'gate', 'attempt', 'sort_at', 'parked_on')
  return {state = row[1], queue = row[2], gate = row[3], attempt = row[4], sort_at = row[5], parked_on = row[6], batch = batch}
end

-- Jobs that were ready when the pause began are all met: they are live until they end, and none becomes ready since. A
-- page with more than the limit is read again.
local function hold_some(cursor)
  local page, held = call('SSCAN', batch_key(batch, 'live'), cursor, 'COUNT', limit), 0
  for _, id in ipairs(page[2]) do
    local job = read_waiting(id)
    if job.state == 'ready' then
      if held == limit then
        return held, false
      end
      hold_waiting(id, job, job.sort_at)
      held = held + 1
    end
  end
  call('HSET', batch_key(batch), 'hold_cursor', page[1])
  return held, page[1] == '0'
end

-- What a process of the release before cancelled or pruned still stands among the held ones; it is held no more.
local function let_some_go()
  local ids, gone = call('ZRANGE', batch_key(batch, 'held'), 0, limit - 1), 0
  for _, id in ipairs(ids) do
    local job = read_waiting(id)
    if job.state == 'parked' and job.parked_on == held_by(batch) then
      let_go(id, job)
      gone = gone + 1
    else
      call('ZREM', batch_key(batch, 'held'), id)
    end
  end
  return gone, #ids < limit
end

local row = call('HMGET', batch_key(batch), 'state', 'paused_at', 'hold_cursor')
if not row[1] then
  call('SREM', ROOT .. 'batches:pausing', batch)
  return {-1, 1}
elseif call('SISMEMBER', ROOT .. 'batches:pausing', batch) == 0 or not leads(ARGV[4], ARGV[5]) then
  return {0, 1}
end
local moved, over
if row[2] then
  moved, over = hold_some(row[3] or '0')
else
  moved, over = let_some_go()
end
if over then
  call('SREM', ROOT .. 'batches:pausing', batch)
end
flush()
return {moved, over and 1 or 0}
