-- Parts of streamed answers: `spool:KEY` has them by number, `spool` when each was stored.
-- include keys
local function spool_key(key)
  return ROOT .. 'spool:' .. key
end

local function forget_part(key, number)
  call('HDEL', spool_key(key), number)
  call('ZREM', ROOT .. 'spool', key .. ' ' .. number)
end

local function forget_parts(key)
  for _, number in ipairs(call('HKEYS', spool_key(key))) do
    forget_part(key, number)
  end
end

-- The parts under a key up to the first number that is missing; those behind it are forgotten.
local function take_parts(key)
  local parts, stored = {}, call('HLEN', spool_key(key))
  local part = stored > 0 and call('HGET', spool_key(key), '0')
  while part do
    parts[#parts + 1] = part
    part = call('HGET', spool_key(key), text(#parts))
  end
  if #parts < stored then
    for _, number in ipairs(call('HKEYS', spool_key(key))) do
      if tonumber(number) >= #parts then
        forget_part(key, number)
      end
    end
  end
  return parts
end
