#!lua
-- Open calls of models, each as if it were alone, against memo, live calls of its key, pool and budgets.
-- Arguments: session, bytes of texts to stop behind, then JSON of each call (`ledger_rows.py`). Returns rows {verdict,
-- answer, refusing scope or list of parts that are spooled}; fewer than were asked where they hold that many bytes.
-- Keys: answer, call, calls, held, live, flying, flyers, sessions, sum, sums, spent, budget, orphans, spool.
-- Complexity: O(N log M + L), N the calls, L those in flight in scopes with a budget.
-- include budgets, spooling
local session, room, openings = ARGV[2], tonumber(ARGV[3]), {}

local function opened(key)
  local parts = take_parts(key)
  for _, part in ipairs(parts) do
    room = room - #part
  end
  return {'opened', parts}
end

local function open_again(id, row, new)
  if not is_live(row.state) then
    return {'ended'}
  end
  join_session(id, session, row.session)
  local state = new.state == 'sent' and row.state == 'prepared' and 'sent' or row.state
  call('HSET', call_key(id), 'session', session, 'state', state)
  return opened(new.key)
end

-- Whether a live call of a living session is under way; one of a dead session is ended.
local function is_held(key)
  local holder = call('HGET', ROOT .. 'held', key)
  if not holder then
    return false
  end
  local row = read_call(holder)
  if alive(row.session) then
    return true
  end
  lose_call(holder, row)
  write_sums()
  forget_rooms()
  return false
end

local function refusal_of(new, most_in_flight, most_per_day)
  local flying = live_key('pool:' .. new.pool)
  if most_in_flight and call('ZCARD', flying) >= most_in_flight then
    return {'pool_full'}
  end
  if most_per_day then
    local ended = call('HMGET', sum_key(TODAY, 'pool:' .. new.pool), 'settled', 'orphaned')
    local live = call('ZCOUNT', flying, text(TODAY * DAY_LENGTH), '+inf')
    if live + (ended[1] or 0) + (ended[2] or 0) >= most_per_day then
      return {'day_full'}
    end
  end
  local scope = refusing_scope(new)
  return scope and {'over_budget', scope}
end

local function open(asked)
  local id, new = asked.id, asked.call
  local own, answer = read_call(id), not asked.fresh and call('GET', ROOT .. 'answer:' .. new.key)
  if answer then
    if own and is_live(own.state) then
      remove_call(id, own)
      forget_rooms()
    end
    room = room - #answer
    return {'answered', answer}
  elseif own then
    return open_again(id, own, new)
  elseif is_held(new.key) then
    return {'held'}
  end
  local refusal = refusal_of(new, asked.most_in_flight, asked.most_per_day)
  if refusal then
    return refusal
  end
  open_call(id, new, session)
  note_opened(new)
  return opened(new.key)
end

for index = 4, #ARGV do
  openings[#openings + 1] = open(cjson.decode(ARGV[index]))
  if room <= 0 then
    break
  end
end
return openings
