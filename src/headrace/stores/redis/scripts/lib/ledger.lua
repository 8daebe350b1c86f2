-- The moves of a call in the ledger. A live one (prepared, sent, received) holds its memo key, is in the set of its
-- session, and in `live:SCOPE` of each of its scopes, with what it may use at most: that is where calls in flight and
-- what is reserved come from. A call's row and these places change in one script, by the functions here.
-- include sums
local function call_key(id)
  return ROOT .. 'call:' .. id
end

local function live_key(scope)
  return ROOT .. 'live:' .. scope
end

local function flying_key(session)
  return ROOT .. 'flying:' .. session
end

local function is_live(state)
  return state == 'prepared' or state == 'sent' or state == 'received'
end

-- The row of a call; nil for one that is not there.
local function read_call(id)
  local row = hash_at(call_key(id))
  return row.state and row
end

-- A member of `live:SCOPE`.
local function live_member(id, row)
  return id .. ' ' .. (row.nano or '0') .. ' ' .. text(row.prompt + row.most)
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
  for name, value in pairs(new) do
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  end
  call('HSET', call_key(id), 'session', session, 'opened_at', NOW_TEXT, unpack(fields))
  call('ZADD', ROOT .. 'calls', NOW_TEXT, id)
  call('HSET', ROOT .. 'held', new.key, id)
  join_session(id, session)
  local member = live_member(id, new)
  for scope in scopes_of(new) do
    call('ZADD', live_key(scope), NOW_TEXT, member)
  end
end

-- Take a live call from its places.
local function release_call(id, row)
  call('HDEL', ROOT .. 'held', row.key)
  call('SREM', flying_key(row.session), id)
  local member = live_member(id, row)
  for scope in scopes_of(row) do
    call('ZREM', live_key(scope), member)
  end
end

-- Forget a live call: it was not sent.
local function remove_call(id, row)
  release_call(id, row)
  call('DEL', call_key(id))
  call('ZREM', ROOT .. 'calls', id)
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
