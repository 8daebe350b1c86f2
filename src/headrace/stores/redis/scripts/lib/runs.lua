-- Runs of workflows: `run:ID` is the record, `run:ID:nodes` has "NUMBER FINISHED_AT TEXT" of each node that ended, by path,
-- `run:ID:order` their paths in the order of these numbers, `run:ID:joins` "REMAINING FIRED" of what is waited for, by path,
-- `run:ID:jobs` the jobs that are not final. `runs:STATE` and `runs:STATE:WORKFLOW` have runs by the time they were created,
-- `runs:ended` final ones by that of their end; `snapshot:HASH` has a graph, and how many runs and versions use it.
-- include bulk
local function run_key(id, part)
  return ROOT .. 'run:' .. id .. (part and ':' .. part or '')
end

-- What an idempotency key of a workflow stands for.
local function run_name(workflow, key)
  return ROOT .. 'key:run:' .. workflow .. ':' .. key
end

local function index_run(id, state, workflow, created_at)
  call('ZADD', ROOT .. 'runs:' .. state, created_at, id)
  call('ZADD', ROOT .. 'runs:' .. state .. ':' .. workflow, created_at, id)
end

local function forget_in_index(id, state, workflow)
  call('ZREM', ROOT .. 'runs:' .. state, id)
  call('ZREM', ROOT .. 'runs:' .. state .. ':' .. workflow, id)
end

local run_states = {}
-- The state of a run; false where there is none.
local function run_state(id)
  if run_states[id] == nil then
    run_states[id] = call('HGET', run_key(id), 'state') or false
  end
  return run_states[id]
end

local function move_run(id, state)
  local row = call('HMGET', run_key(id), 'state', 'workflow', 'created_at')
  forget_in_index(id, row[1], row[2])
  index_run(id, state, row[2], row[3])
  call('HSET', run_key(id), 'state', state)
  run_states[id] = state
end

-- End a run. `facts` are names and values in turn.
local function end_run(id, state, facts)
  move_run(id, state)
  call('HSET', run_key(id), 'finished_at', NOW_TEXT, unpack(facts))
  call('ZADD', ROOT .. 'runs:ended', NOW_TEXT, id)
  call('UNLINK', run_key(id, 'joins'))
end

-- Keep how nodes of a run ended, {path, text} each; a path that has an ending keeps it.
local function keep_endings(id, endings)
  local nodes, order = run_key(id, 'nodes'), run_key(id, 'order')
  for _, ending in ipairs(endings) do
    if call('HEXISTS', nodes, ending[1]) == 0 then
      local number = call('RPUSH', order, ending[1])
      call('HSET', nodes, ending[1], text(number) .. ' ' .. NOW_TEXT .. ' ' .. ending[2])
    end
  end
end

-- Note one more use of a snapshot, or one less: without any it goes.
local function use_snapshot(hash, graph)
  call('HSETNX', ROOT .. 'snapshot:' .. hash, 'graph', graph)
  call('HINCRBY', ROOT .. 'snapshot:' .. hash, 'uses', 1)
end

local function leave_snapshot(hash)
  local key = ROOT .. 'snapshot:' .. hash
  if call('HINCRBY', key, 'uses', -1) <= 0 then
    call('DEL', key)
  end
end
