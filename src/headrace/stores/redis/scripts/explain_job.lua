#!lua flags=no-writes
-- Say why a job is not running, by the predicate that claims and admits. Arguments: id, levels that are
-- counted elsewhere (JSON of {units, microseconds closed} by bucket, or empty). Returns nil for an unknown job, else
-- {state, reason, subject, until or 0, JSON of facts, ahead or -1}.
-- Keys: job, queue, batches:cancelling, gated, ready, lane, heads, sessions, session, and what lib/keeper.lua reads.
-- Complexity: O(log M + S + F), S the live sessions, F what holds up the job.
-- include keeper, waiting, claiming
-- Whether jobs wait in other lanes of a queue than that of a gate; that of jobs without a gate has its own set.
local function others_wait(queue, gate)
  local heads = ROOT .. 'heads:' .. queue
  local others = call('HLEN', heads) - call('HEXISTS', heads, OPEN_GATE)
  if gate and gate ~= OPEN_GATE then
    others = others - call('HEXISTS', heads, gate) + call('EXISTS', ROOT .. 'ready:' .. queue)
  end
  return others > 0
end

local id = ARGV[2]
local row = call('HMGET', job_key(id), 'state', 'queue', 'gate', 'run_at', 'batch', 'parked_on')
local pause = row[5] and call('HMGET', batch_key(row[5]), 'paused_at', 'paused_reason') or {}
local state, queue = row[1], row[2]
if not state then
  return false
elseif state == 'succeeded' or state == 'failed' or state == 'cancelled' then
  return {state, 'final', false, 0, '{}', -1}
elseif pause[1] and state ~= 'running' then
  local why = pause[2] ~= '' and pause[2] or cjson.null
  return {state, 'batch_paused', row[5], 0, cjson.encode({paused_reason = why}), -1}
elseif state ~= 'ready' then
  return {state, state, row[6], state ~= 'running' and row[4] or 0, '{}', -1}
end
if paused(queue) then
  local reason = call('HGET', ROOT .. 'queue:' .. queue, 'paused')
  return {state, 'paused', queue, 0, cjson.encode({paused_reason = reason ~= '' and reason or cjson.null}), -1}
elseif row[5] and call('SISMEMBER', ROOT .. 'batches:cancelling', row[5]) == 1 then
  return {state, 'cancelling', row[5], 0, '{}', -1}
end
local lane = ready_key({queue = queue, gate = row[3]})
local ahead = math.min(call('ZRANK', lane, id) or 0, 1000)
if call('SISMEMBER', ROOT .. 'gated', queue) == 1 then
  -- What holds up the first of its lane holds up the whole lane.
  local first = call('ZRANGE', lane, 0, 0)[1] or id
  local head = call('HMGET', job_key(first), 'cost', 'attempt')
  local gate = gate_of(row[3])
  local job = {id = first, queue = queue, gate = gate, cost = tonumber(head[1] or 1), attempt = tonumber(head[2] or 0)}
  if ARGV[3] ~= '' then
    stand_elsewhere(job, cjson.decode(ARGV[3]))
  end
  local obstacle = obstacles_of(job)[1]
  if obstacle then
    if obstacle.subject == gate.key and gate.in_order then
      local holders = call('SMEMBERS', keys_key(queue, gate))
      table.sort(holders)
      obstacle.facts.held_by = holders[1]
    end
    local until_at = obstacle.until_at and text(obstacle.until_at) or 0
    return {state, obstacle.reason, obstacle.subject, until_at, cjson.encode(obstacle.facts), ahead}
  end
end
for _, session in ipairs(call('ZRANGE', ROOT .. 'sessions', '(' .. NOW_TEXT, '+inf', 'BYSCORE')) do
  if cjson.decode(call('HGET', ROOT .. 'session:' .. session, 'queues'))[queue] then
    return {state, 'order', false, 0, cjson.encode({others = others_wait(queue, row[3])}), ahead}
  end
end
return {state, 'no_worker', queue, 0, '{}', ahead}
