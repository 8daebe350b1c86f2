-- Jobs entering and leaving a session, with what they hold while they run.
-- include bulk, gates
local function start(id, job, session)
  later('SADD', running_key(job.queue, session), id)
  if job.timeout then
    later('ZADD', ROOT .. 'deadlines', text(NOW + job.timeout), id)
  end
  if job.gate then
    local gate = gate_of(job.gate)
    for _, cap in ipairs(gate.caps) do
      -- The cap of its own queue counts it by the running sets.
      if cap ~= 'queue:' .. job.queue then
        later('SADD', ROOT .. 'holds:' .. cap, id)
      end
    end
    if gate.key then
      later('SADD', keys_key(job.queue, gate), id)
    end
  end
end

-- With `keeps_key` the job goes on to hold its concurrency key.
local function leave_running(id, job, keeps_key)
  later('SREM', running_key(job.queue, job.session), id)
  if job.timeout then
    later('ZREM', ROOT .. 'deadlines', id)
  end
  if job.gate then
    local gate = gate_of(job.gate)
    for _, cap in ipairs(gate.caps) do
      later('SREM', ROOT .. 'holds:' .. cap, id)
    end
    if gate.key and not keeps_key then
      later('SREM', keys_key(job.queue, gate), id)
    end
  end
end
