-- Schedules: `schedule:NAME` holds rule, definition, declared_at, after_at, next_at (absent: to be planned), paused (1) and
-- runs, the number of its last fire; `fires:NAME` its latest fires "JOB FIRE_AT FIRED_AT MANUAL" by their numbers;
-- `fired:NAME` the fire times among them, those asked for by hand left out.
-- include intake
local function schedule_key(name)
  return ROOT .. 'schedule:' .. name
end

local function note_fire(name, id, fire_at, manual)
  local fires, fired = ROOT .. 'fires:' .. name, ROOT .. 'fired:' .. name
  local number = call('HINCRBY', schedule_key(name), 'runs', 1)
  call('ZADD', fires, number, id .. ' ' .. fire_at .. ' ' .. NOW_TEXT .. ' ' .. manual)
  if manual == '0' then
    call('SADD', fired, fire_at)
  end
  while call('ZCARD', fires) > KEPT_FIRES do
    local _, at, _, by_hand = string.match(call('ZPOPMIN', fires)[1], '^(%S+) (%S+) (%S+) (%S+)$')
    if by_hand == '0' then
      call('SREM', fired, at)
    end
  end
end

-- Insert the job of a fire; false for one that is there.
local function insert_fire(spec, id, args, run_at)
  note_queue(spec.queue)
  return insert_job(spec, id, args, run_at)
end
