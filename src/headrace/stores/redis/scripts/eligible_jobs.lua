#!lua flags=no-writes
-- Count the ready jobs of a queue that could start now if there were slots, by the predicate that admits. Arguments:
-- queue, how many to count at most for each live worker, levels as for explain_job. Returns {jobs, room under caps (-1: as
-- much as they like), what holds others (kind and name; empty: nothing), live workers, how many units of rates let start
-- (-1: as many as they like)}.
-- Keys: sessions, session, queue, gated, ready, lane, heads, job, batches:cancelling, and what lib/keeper.lua reads.
-- Complexity: O(S + L), S the live sessions, L the lanes, of which no more than so many are looked at.
-- include keeper, waiting, claiming
-- Lanes that are looked at beyond as many as jobs are counted.
local MORE_LANES = 1000
local RANKS = {breaker = 1, rate = 2, cap = 3}
local queue, levels = ARGV[2], ARGV[4] ~= '' and cjson.decode(ARGV[4])
local workers, jobs, rooms, capped, held = 0, 0, -1, true, nil
local most_units, rated = -1, true
for _, session in ipairs(call('ZRANGE', ROOT .. 'sessions', '(' .. NOW_TEXT, '+inf', 'BYSCORE')) do
  if cjson.decode(call('HGET', ROOT .. 'session:' .. session, 'queues'))[queue] then
    workers = workers + 1
  end
end
if paused(queue) then
  return {0, -1, 'paused', workers, -1}
end
local bound = tonumber(ARGV[3]) * math.max(1, workers)

local function note_held(obstacle)
  local rank = RANKS[obstacle.reason]
  if not held or rank < held.rank or rank == held.rank and obstacle.subject < held.subject then
    held = {rank = rank, subject = obstacle.subject, told = obstacle.reason .. ' ' .. obstacle.subject}
  end
end

-- How many jobs of a gate could start at once whatever its caps.
local function most_of(gate)
  local cap = key_cap(queue, gate)
  local most = cap and cap - key_usage(queue, gate) or bound
  for _, key in ipairs(gate.breakers) do
    local breaker = breaker_of(key)
    most = breaker and breaker.state ~= 'closed' and math.min(most, 1) or most
  end
  return most
end

local function note_room(job)
  local room
  for _, name in ipairs(caps_of(job)) do
    local cap = cap_of(name)
    room = cap and math.min(room or cap - usage_of(name), cap - usage_of(name)) or room
  end
  capped = capped and room ~= nil
  rooms = math.max(rooms, room or -1)
end

local function note_units(job)
  local most
  local names, units = units_of(job)
  for _, name in ipairs(names) do
    if bucket_of(name).rate then
      -- One that takes more than the burst starts when the bucket is full.
      local lets = math.max(1, math.floor(level_of(name) / units[name] * (1 + 1e-9)))
      most = math.min(most or lets, lets)
    end
  end
  rated = rated and most ~= nil
  most_units = math.max(most_units, most or -1)
end

local function count_lane(gate)
  local key = lane_key(queue, gate)
  local first = call('ZRANGE', key, 0, 0)[1]
  local row = first and call('HMGET', job_key(first), 'cost', 'attempt', 'batch')
  if not first or is_ghost(row[3]) then
    return
  end
  local job = {id = first, queue = queue, gate = gate, cost = tonumber(row[1] or 1), attempt = tonumber(row[2] or 0)}
  if levels then
    stand_elsewhere(job, levels)
  end
  local obstacles = obstacles_of(job)
  for _, obstacle in ipairs(obstacles) do
    note_held(obstacle)
  end
  if #obstacles == 0 then
    jobs = jobs + math.min(call('ZCARD', key), most_of(gate))
    note_room(job)
    note_units(job)
  end
end

if call('SISMEMBER', ROOT .. 'gated', queue) == 0 then
  jobs, capped = call('ZCARD', ROOT .. 'ready:' .. queue), false
  rated = false
else
  count_lane(gate_of(OPEN_GATE))
  for number, gate_text in ipairs(call('HKEYS', ROOT .. 'heads:' .. queue)) do
    if jobs >= bound or number > bound + MORE_LANES then
      break
    elseif gate_text ~= OPEN_GATE then
      count_lane(gate_of(gate_text))
    end
  end
end
return {math.min(jobs, bound), capped and rooms or -1, held and held.told or '', workers, rated and most_units or -1}
