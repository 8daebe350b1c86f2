-- Statuses of runs. `run:ID` has the state; `run:ID:nodes` states by path, `run:ID:counts` how many are in each,
-- `run:ID:waits` keys of signals by path; `wait:KEY` who waits for a signal, as "ID PATH". All of it goes by itself.
-- include keys
local FINAL = {success = true, failed = true, cancelled = true, skipped = true}
local OVER = {succeeded = true, failed = true, cancelled = true}
-- Milliseconds: of a run that goes on, of one that is over.
local BRIEFLY, LONG = 60000, 3600000

local function status_key(id, part)
  return ROOT .. 'run:' .. id .. (part and ':' .. part or '')
end

local function set_node(id, path, state)
  local nodes, counts = status_key(id, 'nodes'), status_key(id, 'counts')
  local before = call('HGET', nodes, path)
  if before == state or FINAL[before] then
    return
  end
  if before then
    call('HINCRBY', counts, before, -1)
  end
  call('HSET', nodes, path, state)
  call('HINCRBY', counts, state, 1)
  if before == 'parked' then
    local key = call('HGET', status_key(id, 'waits'), path)
    call('HDEL', status_key(id, 'waits'), path)
    if key then
      call('SREM', ROOT .. 'wait:' .. key, id .. ' ' .. path)
    end
  end
end

local function set_wait(id, path, key)
  if call('HGET', status_key(id, 'nodes'), path) == 'parked' then
    call('HSET', status_key(id, 'waits'), path, key)
    call('SADD', ROOT .. 'wait:' .. key, id .. ' ' .. path)
    call('PEXPIRE', ROOT .. 'wait:' .. key, LONG)
  end
end

local function set_state(id, state)
  local before = call('GET', status_key(id))
  if not OVER[before] then
    call('SET', status_key(id), state, 'KEEPTTL')
  end
end

local function keep_for(id, span)
  call('PEXPIRE', status_key(id), span)
  for _, part in ipairs({'nodes', 'counts', 'waits'}) do
    call('PEXPIRE', status_key(id, part), span)
  end
end
