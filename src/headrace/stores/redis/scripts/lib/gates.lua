-- Gates of jobs, read from their texts: `fair` (empty: none), key, key_limit, in_order, caps, limits, breakers, and
-- `class`, the text without fair key and concurrency key: lanes of a class differ in nothing else.
-- include keys
local OPEN_GATE = '{}'
local gates = {}

local function class_of(gate_text)
  for _, name in ipairs({'"caps":[', '"limits":{', '"breakers":['}) do
    local at = string.find(gate_text, name, 1, true)
    if at then
      return '{' .. string.sub(gate_text, at)
    end
  end
  return OPEN_GATE
end

local function gate_of(gate_text)
  gate_text = gate_text or OPEN_GATE
  local gate = gates[gate_text]
  if not gate then
    gate = cjson.decode(gate_text)
    gate.text, gate.class, gate.fair = gate_text, class_of(gate_text), gate.fair or ''
    gate.caps, gate.limits, gate.breakers = gate.caps or {}, gate.limits or {}, gate.breakers or {}
    gate.in_order = gate.key and gate.key_limit == 1
    gates[gate_text] = gate
  end
  return gate
end

local function keys_key(queue, gate)
  return ROOT .. 'keys:' .. queue .. ':' .. gate.key
end

-- Whether a job that goes back keeps its in-order key and its place until it has ended.
local function keeps_place(job)
  return job.gate and tonumber(job.attempt or 0) > 0 and gate_of(job.gate).in_order
end
