-- What calls used, added up: `sum:DAY:SCOPE` for reports, by days since 1970 (UTC), and `used:SCOPE` for budgets, with what
-- live calls reserve. Changes are collected, seen by `figure_of`, and written by `write_sums`. Amounts are whole, below 2^53.
-- include keys
local DAY_LENGTH = 86400000000
local TODAY = text(math.floor(NOW / DAY_LENGTH))
local FIGURES = {'input', 'output', 'cached', 'answered', 'cost', 'unpriced'}
local stored, changes, kinds = {}, {}, {}

local function day_of(at)
  return text(math.floor(at / DAY_LENGTH))
end

local function scopes_of(row)
  return string.gmatch(row.scopes, '[^\31]+')
end

local function kind_of(scope)
  return string.match(scope, '^[^:]+')
end

local function sum_key(day, scope)
  return ROOT .. 'sum:' .. day .. ':' .. scope
end

-- The budget of the day begins anew each day.
local function used_key(day, scope)
  return ROOT .. 'used:' .. (scope == 'day' and 'day:' .. day or scope)
end

local function add_figures(key, figures, sign)
  local known = changes[key]
  if not known then
    known = {}
    changes[key] = known
  end
  for figure, amount in pairs(figures) do
    known[figure] = (known[figure] or 0) + sign * amount
  end
end

local function figure_of(key, figure)
  local name = key .. ' ' .. figure
  stored[name] = stored[name] or tonumber(call('HGET', key, figure) or 0)
  return stored[name] + (changes[key] and changes[key][figure] or 0)
end

-- What of the figures of a sum counts against a budget.
local function spent_of(figures)
  return {cost = (figures.cost or 0) + (figures.lost_cost or 0),
    tokens = (figures.input or 0) + (figures.output or 0) + (figures.lost_tokens or 0),
    unpriced = (figures.unpriced or 0) + (figures.lost_unpriced or 0)}
end

local function figures_of(row)
  local figures = {}
  for _, figure in ipairs(FIGURES) do
    figures[figure] = tonumber(row[figure])
  end
  if row.state == 'orphaned' then
    figures = {orphaned = 1, lost_cost = figures.cost, lost_tokens = (figures.input or 0) + (figures.output or 0),
      lost_unpriced = figures.unpriced}
  else
    figures.settled = 1
  end
  if row.error then
    figures['error:' .. row.error] = 1
  end
  return figures
end

-- Count a call that ended, or with the sign -1 take it away again.
local function count_call(row, sign)
  local day, figures = day_of(row.opened_at), figures_of(row)
  local spent = spent_of(figures)
  for scope in scopes_of(row) do
    kinds[day .. ' ' .. scope] = kind_of(scope)
    add_figures(sum_key(day, scope), figures, sign)
    add_figures(used_key(day, scope), spent, sign)
  end
end

-- Reserve what a call may use at most, or with the sign -1 give it back. Done where its row becomes live, or ceases to be.
local function reserve_call(row, sign)
  local day, figures = day_of(row.opened_at), {reserved_cost = row.nano or 0, reserved_tokens = row.prompt + row.most}
  for scope in scopes_of(row) do
    add_figures(used_key(day, scope), figures, sign)
  end
end

local function write_sums()
  for member, kind in pairs(kinds) do
    call('ZADD', ROOT .. 'sums:' .. kind, string.match(member, '^%d+'), member)
  end
  for key, figures in pairs(changes) do
    for figure, amount in pairs(figures) do
      if amount ~= 0 and call('HINCRBY', key, figure, text(amount)) == 0 then
        call('HDEL', key, figure)
      end
    end
  end
end

-- Remove the sum of a day, and take it from what counts against the scope's budget.
local function forget_sum(day, scope)
  add_figures(used_key(day, scope), spent_of(hash_at(sum_key(day, scope))), -1)
  call('DEL', sum_key(day, scope))
end
