-- What the end of a job sets going in its run: {run, endings, arrivals, jobs, specs, steps, level, reason, ending}.
-- `endings` as in lib/runs.lua; `arrivals` {path, total, need, count, fired, job (false: it was decided before, this only
-- counts)}; `jobs` and those of arrivals {number of its specification in `specs`, id, arguments, run_at, run, node (or
-- empty)}; `steps` {job, name, value} that jobs begin with; `level` empty where the run stays at its own; `ending` absent
-- or {state, {names and values in turn}}.
-- include runs, intake
local noted = {}

-- What jobs share, from the names and values of their specification; read once per list of effects.
local function shared_spec(specs, number)
  local spec = specs[number]
  if not spec.fields then
    spec = spec_of(spec)
    specs[number] = spec
  end
  if not noted[spec.queue] then
    noted[spec.queue] = true
    note_queue(spec.queue)
  end
  return spec
end

local function insert_node(spec, job)
  insert_job(spec, job[2], job[3], job[4], nil, job[5], job[6])
end

-- Insert the jobs that start with a run, or that effects have.
local function insert_nodes(specs, jobs)
  for _, job in ipairs(jobs) do
    insert_node(shared_spec(specs, job[1]), job)
  end
end

-- Count an arrival, and insert the job of whoever is decided by it: it has had enough of those that lead to it, or it can
-- no longer have them and is passed over.
local function arrive(run, specs, arrival)
  local path, total, need, count, fired, job = unpack(arrival)
  local joins = run_key(run, 'joins')
  local known = call('HGET', joins, path)
  local remaining_before, fired_before = total, 0
  if known then
    local remaining, so_far = string.match(known, '^(%S+) (%S+)$')
    remaining_before, fired_before = tonumber(remaining), tonumber(so_far)
  end
  local remaining_now, fired_now = remaining_before - count, fired_before + fired
  call('HSET', joins, path, remaining_now .. ' ' .. fired_now)
  if not job or known and (fired_before >= need or remaining_before <= 0) then
    return
  elseif fired_now >= need then
    insert_node(shared_spec(specs, job[1]), job)
  elseif remaining_now <= 0 then
    specs.passing = specs.passing or NODE_SPEC
    insert_node(shared_spec(specs, 'passing'), job)
  end
end

local function apply_effects(effects)
  local run, specs = effects.run, effects.specs
  if not run_state(run) then
    return
  end
  keep_endings(run, effects.endings)
  if run_state(run) ~= 'running' then
    return
  end
  for _, arrival in ipairs(effects.arrivals) do
    arrive(run, specs, arrival)
  end
  insert_nodes(specs, effects.jobs)
  for _, step in ipairs(effects.steps) do
    call('HSETNX', ROOT .. 'steps:' .. step[1], step[2], step[3])
  end
  if effects.level ~= '' then
    call('HSET', run_key(run), 'level', effects.level, 'reason', effects.reason)
  end
  if effects.ending then
    end_run(run, effects.ending[1], effects.ending[2])
  end
end
