#!lua flags=allow-oom
-- Move jobs of a gated queue to running under a session that lives, as far as the gate lets them pass: shares first, caps,
-- buckets, breakers. Arguments: session, queue, limit, grants (JSON of units by bucket, or empty). Returns {0} for a queue
-- without a gate, else {1, rows of a claim with the refusal as one more, microseconds to look again in (-1: no time
-- brings more), JSON of the units spent of the grants, JSON of the units that they were too few for}.
-- Keys: gated, sessions, queue, classes, fresh, tagged, firsts, lanes, heads, tags, virtual, weights, lane, ready, job, running,
-- holders, holds, keys, caps, bucket, breaker. Complexity: O((N + B) · log M + N · C): N jobs, B lanes held up, C classes.
-- include admitting
local session, queue, limit = ARGV[2], ARGV[3], tonumber(ARGV[4])
if call('SISMEMBER', ROOT .. 'gated', queue) == 0 then
  return {0}
end
if ARGV[5] ~= '' then
  grants, spent = cjson.decode(ARGV[5]), {}
end
if not alive(session) or paused(queue) then
  return {1, {}, -1, '{}', '{}'}
end
-- Jobs without a gate are not watched where they come in: an ungated queue pays nothing.
settle_lane(queue, gate_of(OPEN_GATE))
local classes = call('SMEMBERS', ROOT .. 'classes:' .. queue)
lower_tags(queue, classes)
local rows, held, look_at, more = {}, 0, nil, false

while not more do
  local job, tag = next_candidate(queue, classes)
  if not job then
    break
  end
  local refused = refusal_of(job)
  local obstacles = obstacles_of(job, refused)
  if #obstacles > 0 then
    local at, wide = hold(job, obstacles)
    held = held + 1
    look_at = at and math.min(at, look_at or at) or look_at
    stuck[job.gate.text], stuck_classes[job.gate.class] = true, wide or nil
    if not wide then
      note_dear(job)
    end
  elseif #rows >= limit then
    more = true
  else
    call('ZREM', lane_key(queue, job.gate), job.id)
    local gate_text = job.gate.text ~= OPEN_GATE and job.gate.text or nil
    local row = start_claimed(job.id, queue, session, gate_text)
    take(job, row[3], refused)
    charge_share(job, tag, classes)
    settle_lane(queue, job.gate)
    row[#CLAIMED + 2] = refused or false
    rows[#rows + 1] = row
  end
end

more = more or ghosts >= GHOSTS_AT_ONCE
local look_in = more and 0 or look_at and look_at - NOW or -1
if #rows > 0 then
  call('SADD', ROOT .. 'holders', session .. ':' .. queue)
  if not more and held == 0 then
    rest(queue, classes)
  end
end
flush()
write_buckets()
return {1, rows, text(look_in), spent and next(spent) and cjson.encode(spent) or '{}',
  next(short) and cjson.encode(short) or '{}'}
