-- What scopes may spend, and what is left of it: spent is what is added up, reserved what `live:SCOPE` holds. Both are
-- read once in a script, which calls `note_opened` and `forget_rooms` as it opens and ends calls.
-- include ledger
local used, reserved = {}, {}

-- What was spent of a scope; of the scope day today's.
local function used_of(scope)
  if not used[scope] then
    used[scope] = scope == 'day' and spent_of(hash_at(sum_key(TODAY, scope))) or hash_at(ROOT .. 'spent:' .. scope)
  end
  return used[scope]
end

-- What live calls of a scope may use at most; of the scope day those that were opened today.
local function reserved_of(scope)
  if not reserved[scope] then
    local cost, tokens, from = 0, 0, scope == 'day' and text(TODAY * DAY_LENGTH) or '-inf'
    for _, member in ipairs(call('ZRANGE', live_key(scope), from, '+inf', 'BYSCORE')) do
      local its_cost, its_tokens = string.match(member, ' (%d+) (%d+)$')
      cost, tokens = cost + its_cost, tokens + its_tokens
    end
    reserved[scope] = {cost = cost, tokens = tokens}
  end
  return reserved[scope]
end

local function has_room(scope, figure, limit, wanted)
  return not limit or (used_of(scope)[figure] or 0) + reserved_of(scope)[figure] + wanted <= tonumber(limit)
end

-- The first scope whose budget has no room for a call; nil: all have.
local function refusing_scope(row)
  for scope in scopes_of(row) do
    local limits = call('HMGET', ROOT .. 'budget:' .. scope, 'cost', 'tokens')
    local fits = has_room(scope, 'cost', limits[1], row.nano or 0)
      and has_room(scope, 'tokens', limits[2], row.prompt + row.most)
    if not fits then
      return scope
    end
  end
end

local function note_opened(row)
  for scope in scopes_of(row) do
    local sum = reserved[scope]
    if sum then
      sum.cost, sum.tokens = sum.cost + (row.nano or 0), sum.tokens + row.prompt + row.most
    end
  end
end

local function forget_rooms()
  used, reserved = {}, {}
end
