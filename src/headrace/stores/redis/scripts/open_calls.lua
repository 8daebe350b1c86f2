#!lua
-- Open calls of models, each as if it were alone, against memo, live calls of its key, pool and budgets.
-- Arguments: session, bytes of texts to stop behind, then JSON of each call (`ledger_rows.py`). Returns rows {verdict,
-- answer, refusing scope or list of parts that are spooled}; fewer than were asked where they hold that many bytes.
-- Keys: answer, call, calls, calls_of, held, live, flying, flyers, sessions, sum, sums, used, budget, orphans, spool.
-- Complexity: O(N log M), N the calls.
-- include ledger, spooling
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
  return false
end

local function has_room(scope, figure, limit, wanted)
  local key = used_key(TODAY, scope)
  return not limit or figure_of(key, figure) + figure_of(key, 'reserved_' .. figure) + wanted <= tonumber(limit)
end

-- The first scope whose budget has no room for a call; nil: all have.
local function refusing_scope(new)
  for scope in scopes_of(new) do
    local limits = call('HMGET', ROOT .. 'budget:' .. scope, 'cost', 'tokens')
    if not (has_room(scope, 'cost', limits[1], new.nano or 0)
        and has_room(scope, 'tokens', limits[2], new.prompt + new.most)) then
      return scope
    end
  end
end

local function refusal_of(new, most_in_flight, most_per_day)
  local live, ended = live_key(new.pool), sum_key(TODAY, 'pool:' .. new.pool)
  if most_in_flight and call('ZCARD', live) >= most_in_flight then
    return {'pool_full'}
  end
  if most_per_day then
    local begun = call('ZCOUNT', live, text(TODAY * DAY_LENGTH), '+inf')
    if begun + figure_of(ended, 'settled') + figure_of(ended, 'orphaned') >= most_per_day then
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
  return opened(new.key)
end

for index = 4, #ARGV do
  openings[#openings + 1] = open(cjson.decode(ARGV[index]))
  if room <= 0 then
    break
  end
end
write_sums()
return openings
