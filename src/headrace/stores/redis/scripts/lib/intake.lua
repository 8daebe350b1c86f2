-- Inserting a job. `spec` is what jobs of one call share: `fields` (names and values in turn, the batch among them),
-- queue, gate, batch, and lead (the head start); `run` and `node` (or empty) those of a job of a run. Returns false for
-- an id that is stored, live or final.
-- include holding
local function insert_job(spec, id, args, run_at, ordinal, run, node)
  local key = job_key(id)
  if call('EXISTS', key) == 1 then
    return false
  end
  local place = text(math.max(run_at, NOW) - spec.lead)
  if run_at > NOW then
    local due = text(run_at)
    call('HSET', key, 'args', args, 'created_at', NOW_TEXT, 'state', 'scheduled', 'run_at', due, unpack(spec.fields))
    enter_scheduled(id, spec, due)
  elseif is_held(spec.batch) then
    call('HSET', key, 'args', args, 'created_at', NOW_TEXT, unpack(spec.fields))
    hold(id, spec, place)
  else
    call('HSET', key, 'args', args, 'created_at', NOW_TEXT, 'state', 'ready', 'sort_at', place, unpack(spec.fields))
    if run_at > 0 then
      call('HSET', key, 'run_at', text(run_at))
    end
    enter_ready(id, spec, place)
  end
  if ordinal then
    call('HSET', key, 'ordinal', ordinal)
    later('SADD', batch_key(spec.batch, 'live'), id)
  end
  if run then
    call('HSET', key, 'run', run)
    if node ~= '' then
      call('HSET', key, 'node', node)
    end
    later('SADD', ROOT .. 'run:' .. run .. ':jobs', id)
  end
  later('ZADD', ROOT .. 'jobs:' .. spec.queue, NOW_TEXT, id)
  if spec.gate and not spec.gated then
    -- The first job with a gate gates its queue for good.
    spec.gated = call('SADD', ROOT .. 'gated', spec.queue)
  end
  return true
end

-- Make a queue known.
local function note_queue(queue)
  call('SADD', ROOT .. 'queues', queue)
end

-- Return what jobs share from the names and values of a specification.
local function spec_of(fields)
  local spec = {fields = fields}
  for index = 1, #fields, 2 do
    spec[fields[index]] = fields[index + 1]
  end
  spec.lead = head_start(spec)
  return spec
end
