-- Applying the completions of one session, each under its fence.
-- include ending, effects

local function plus(count, more)
  return (count or 0) + (more and 1 or 0)
end

-- Names and values of what an ending writes beside the state.
local function facts_of(job, result, ending)
  local facts = {}
  local function fact(name, value)
    facts[#facts + 1] = name
    facts[#facts + 1] = value
  end
  if result ~= '' then
    fact('result', result)
  end
  if ending.error then
    fact('error', ending.error)
  end
  if ending.usage then
    fact('usage', ending.usage)
  end
  if ending.charged then
    fact('failures', plus(job.failures, true))
  end
  if ending.lone then
    fact('crashes', plus(job.crashes, true))
  end
  return facts
end

-- Keep what an attempt logged; of a job that goes back those of its last attempts, so that there is room for one more.
local function keep_log(id, job, log, goes_back)
  local key = log_key(id)
  call('HSETNX', key, job.attempt, log)
  if goes_back then
    for _, attempt in ipairs(call('HKEYS', key)) do
      if tonumber(attempt) <= tonumber(job.attempt) - MAX_LOGS + 1 then
        call('HDEL', key, attempt)
      end
    end
  end
end

-- End an attempt whose job goes back, unless it is to be cancelled or has crashed alone too often.
local function send_back(id, job, ending)
  local alone = plus(not ending.progressed and job.lone_crashes or 0, ending.lone)
  local over = job.cancel and 'cancelled' or alone >= MAX_LONE_CRASHES and 'failed'
  if over then
    if over == 'failed' then
      ending.error = POISON
    end
    leave_running(id, job)
    finish(id, job, over, facts_of(job, '', ending))
    return
  end
  local key = job_key(id)
  if ending.charged or ending.lone or ending.error then
    record_attempt(id, job, ending.lone and 'crashed' or ending.charged and 'failed' or 'lost', ending.error)
    call('HSET', key, 'failures', plus(job.failures, ending.charged), 'crashes', plus(job.crashes, ending.lone))
  end
  if alone ~= tonumber(job.lone_crashes or 0) then
    call('HSET', key, 'lone_crashes', alone)
  end
  if ending.released then
    release(id, job)
  elseif ending.park then
    park(id, job, ending.park[1], ending.park[2])
  else
    wait(id, job, ending.delay)
  end
end

-- Returns the positions of the completions that were refused. Each is {id, attempt, result, ending, effects}: result JSON
-- text or empty, ending empty for a plain success, else {state, final, error, usage, charged, lone, progressed, released,
-- delay, park (signal or empty, microseconds or -1), log}; effects as in lib/effects.lua where a final one has them, else absent.
local function complete_jobs(session, completions)
  local refused = {}
  for position, done in ipairs(completions) do
    local id, ending, effects = done[1], done[4], done[5]
    local job = read_job(id, ending == '' and BRIEF or JOB)
    if not job or job.state ~= 'running' or job.session ~= session or tonumber(job.attempt) ~= done[2] then
      refused[#refused + 1] = position
    elseif ending ~= '' and not ending.final then
      if ending.log then
        keep_log(id, job, ending.log, true)
      end
      send_back(id, job, ending)
    else
      leave_running(id, job)
      if ending == '' then
        finish(id, job, 'succeeded', done[3] ~= '' and {'result', done[3]} or {}, effects)
      else
        finish(id, job, ending.state, facts_of(job, done[3], ending), effects)
        if ending.log then
          keep_log(id, job, ending.log)
        end
      end
      if effects then
        apply_effects(effects)
      end
    end
  end
  return refused
end
