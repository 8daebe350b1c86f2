#!lua flags=no-writes
-- Return all limits but rates as they stand: {caps, breakers, shares}, each a list of rows: {name, declared, override,
-- running}, {key, names and values in turn}, {queue, fair key, weight, finish tag}.
-- Arguments: shares at most, -1: all. Keys: caps, holds, holders, running, breakers, breaker, gated, weighted, weights, tags, virtual.
-- Complexity: O(N), all caps, breakers and shares.
-- include keeper, shares
local function names_in(...)
  local seen, names = {}, {}
  for _, list in ipairs({...}) do
    for _, name in ipairs(list) do
      if not seen[name] then
        seen[name] = true
        names[#names + 1] = name
      end
    end
  end
  table.sort(names)
  return names
end

local cap_rows, breaker_rows, share_rows = {}, {}, {}
local declared, override = ROOT .. 'caps:declared', ROOT .. 'caps:override'
for _, name in ipairs(names_in(call('HKEYS', declared), call('HKEYS', override))) do
  cap_rows[#cap_rows + 1] = {name, call('HGET', declared, name), call('HGET', override, name), usage_of(name)}
end
for _, key in ipairs(names_in(call('SMEMBERS', ROOT .. 'breakers'))) do
  breaker_rows[#breaker_rows + 1] = {key, call('HGETALL', ROOT .. 'breaker:' .. key)}
end
for _, queue in ipairs(names_in(call('SMEMBERS', ROOT .. 'gated'), call('SMEMBERS', ROOT .. 'weighted'))) do
  local weights, tags = ROOT .. 'weights:' .. queue, ROOT .. 'tags:' .. queue
  local room = tonumber(ARGV[2])
  local fairs = room ~= 0 and names_in(call('HKEYS', weights), call('ZRANGE', tags, 0, -1)) or {}
  for _, fair in ipairs(fairs) do
    if fair ~= '' and (room < 0 or #share_rows < room) then
      local tag = call('ZSCORE', tags, fair) or exactly(virtual_of(queue))
      share_rows[#share_rows + 1] = {queue, fair, call('HGET', weights, fair) or '1', tag}
    end
  end
end
return {cap_rows, breaker_rows, share_rows}
