-- Commands on keys that many jobs share, collected and sent once per key: `later` collects, `flush` sends, then calls
-- what other pieces left in `after_flush`. One command takes at most PART arguments (Lua's stack holds 8,000); PART is
-- even, for pairs of score and member.
-- include keys
local PART = 4000
local bulk, after_flush = {}, nil

local function later(command, key, ...)
  local name = command .. key
  local list = bulk[name]
  if not list then
    list = {command = command, key = key}
    bulk[name] = list
  end
  for index = 1, select('#', ...) do
    list[#list + 1] = (select(index, ...))
  end
end

local function call_in_parts(command, key, list)
  for first = 1, #list, PART do
    call(command, key, unpack(list, first, math.min(first + PART - 1, #list)))
  end
end

local function flush()
  for _, list in pairs(bulk) do
    call_in_parts(list.command, list.key, list)
  end
  bulk = {}
  if after_flush then
    after_flush()
  end
end
