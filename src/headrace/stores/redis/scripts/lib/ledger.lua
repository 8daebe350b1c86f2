-- The moves of a call in the ledger. A live one (prepared, sent, received) holds its memo key, is in `live`, in `live:POOL`
-- and in the set of its session, and reserves what it may use at most. Its row, these places and what is reserved change in
-- one script, by the functions here. Scripts end with `write_sums`.
-- include sums
local function call_key(id)
  return ROOT .. 'call:' .. id
end

local function live_key(pool)
  return ROOT .. 'live:' .. pool
end

local function flying_key(session)
  return ROOT .. 'flying:' .. session
end

local function is_live(state)
  return state == 'prepared' or state == 'sent' or state == 'received'
end

-- A call is found by its id alone, in the order of calls, and among those of its job.
local function list_call(id, row)
  call('ZADD', ROOT .. 'calls', row.opened_at, id)
  if row.job then
    call('ZADD', ROOT .. 'calls_of:' .. row.job, row.opened_at, id)
  end
end

local function unlist_call(id, job)
  call('DEL', call_key(id))
  call('ZREM', ROOT .. 'calls', id)
  if job then
    call('ZREM', ROOT .. 'calls_of:' .. job, id)
  end
end

-- The row of a call; nil for one that is not there.
local function read_call(id)
  local row = hash_at(call_key(id))
  return row.state and row
end

-- Let a call count as one of a session, and of none other.
local function join_session(id, session, former)
  if former and former ~= session then
    call('SREM', flying_key(former), id)
  end
  call('SADD', flying_key(session), id)
  call('SADD', ROOT .. 'flyers', session)
end

-- Record a call that may be made. `new` has its fields.
local function open_call(id, new, session)
  local fields = {}
  new.opened_at = NOW_TEXT
  for name, value in pairs(new) do
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  end
  call('HSET', call_key(id), 'session', session, unpack(fields))
  list_call(id, new)
  for _, place in ipairs({ROOT .. 'live', live_key(new.pool)}) do
    call('ZADD', place, NOW_TEXT, id)
  end
  call('HSET', ROOT .. 'held', new.key, id)
  join_session(id, session)
  reserve_call(new, 1)
end

-- Take a live call from its places.
local function release_call(id, row)
  call('HDEL', ROOT .. 'held', row.key)
  call('SREM', flying_key(row.session), id)
  call('ZREM', ROOT .. 'live', id)
  call('ZREM', live_key(row.pool), id)
  reserve_call(row, -1)
end

-- Forget a live call: it was not sent.
local function remove_call(id, row)
  release_call(id, row)
  unlist_call(id, row.job)
end

-- Record how a call ended, and count it. `ending` has its state and the other fields of the end, as far as they say
-- something; `row` the fields it has so far.
local function write_end(id, row, ending)
  local fields = {}
  row.ended_at = NOW_TEXT
  for name, value in pairs(ending) do
    row[name] = value
  end
  for name, value in pairs(row) do
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  end
  call('DEL', call_key(id))
  call('HSET', call_key(id), unpack(fields))
  if row.state == 'orphaned' then
    call('ZADD', ROOT .. 'orphans', row.opened_at, id)
  else
    call('ZREM', ROOT .. 'orphans', id)
  end
  count_call(row, 1)
end

-- End a call, also one that was orphaned.
local function end_call(id, row, ending)
  if is_live(row.state) then
    release_call(id, row)
  else
    count_call(row, -1)
    for _, name in ipairs({'priced_by', 'error', 'request_id', unpack(FIGURES)}) do
      row[name] = nil
    end
  end
  row.session = nil
  write_end(id, row, ending)
end

-- End a live call of a dead session.
local function lose_call(id, row)
  if row.state == 'prepared' then
    remove_call(id, row)
  else
    end_call(id, row, {state = 'orphaned', input = row.prompt, output = row.most, cost = row.nano,
      unpriced = not row.nano and '1' or nil})
  end
end
