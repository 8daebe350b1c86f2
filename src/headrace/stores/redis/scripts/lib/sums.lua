-- What ended calls used, added up by scope and day (counted from 1970, UTC): collected by `count_call`, written by
-- `write_sums`. `spent` has what counts against a scope's budget over all days. All amounts are whole and below 2^53.
-- include keys
local DAY_LENGTH = 86400000000
local TODAY = text(math.floor(NOW / DAY_LENGTH))
local FIGURES = {'input', 'output', 'cached', 'answered', 'cost', 'unpriced'}
local sums = {}

local function day_of(at)
  return text(math.floor(at / DAY_LENGTH))
end

local function scopes_of(row)
  return string.gmatch(row.scopes, '[^\31]+')
end

local function sum_key(day, scope)
  return ROOT .. 'sum:' .. day .. ':' .. scope
end

local function add_figure(day, scope, figure, amount)
  local key = day .. ' ' .. scope
  local sum = sums[key]
  if not sum then
    sum = {day = day, scope = scope, figures = {}}
    sums[key] = sum
  end
  sum.figures[figure] = (sum.figures[figure] or 0) + amount
end

-- Count a call that ended, or with the sign -1 take it away again. `row` has its fields, numbers as text or not.
local function count_call(row, sign)
  local day, lost, figures = day_of(row.opened_at), row.state == 'orphaned', {}
  for _, figure in ipairs(FIGURES) do
    figures[figure] = sign * (tonumber(row[figure]) or 0)
  end
  if lost then
    figures = {lost_tokens = figures.input + figures.output, lost_cost = figures.cost, lost_unpriced = figures.unpriced}
  end
  figures[lost and 'orphaned' or 'settled'] = sign
  if row.error then
    figures['error:' .. row.error] = sign
  end
  for scope in scopes_of(row) do
    for figure, amount in pairs(figures) do
      add_figure(day, scope, figure, amount)
    end
  end
end

-- What of a sum counts against a budget.
local function spent_of(figures)
  return {cost = (figures.cost or 0) + (figures.lost_cost or 0),
    tokens = (figures.input or 0) + (figures.output or 0) + (figures.lost_tokens or 0),
    unpriced = (figures.unpriced or 0) + (figures.lost_unpriced or 0)}
end

local function increase(key, figures)
  for figure, amount in pairs(figures) do
    if amount ~= 0 then
      call('HINCRBY', key, figure, text(amount))
    end
  end
end

local function write_sums()
  for _, sum in pairs(sums) do
    call('ZADD', ROOT .. 'sums:' .. string.match(sum.scope, '^[^:]+'), sum.day, sum.day .. ' ' .. sum.scope)
    increase(sum_key(sum.day, sum.scope), sum.figures)
    -- The budget of the day looks at the sum of a day.
    if sum.scope ~= 'day' then
      increase(ROOT .. 'spent:' .. sum.scope, spent_of(sum.figures))
    end
  end
  sums = {}
end

-- Remove the sum of a day, and take it from what counts against the scope's budget.
local function forget_sum(day, scope)
  local key, spent = sum_key(day, scope), ROOT .. 'spent:' .. scope
  for figure, amount in pairs(spent_of(hash_at(key))) do
    if scope ~= 'day' and amount ~= 0 and call('HINCRBY', spent, figure, text(-amount)) == 0 then
      call('HDEL', spent, figure)
    end
  end
  call('DEL', key)
end
