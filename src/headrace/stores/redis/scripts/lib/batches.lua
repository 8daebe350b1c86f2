-- Batches: their items, and the state they are in.
local function takes_items(state)
  return state == 'open' or state == 'abandoned'
end

local function uuid_text(id)
  return table.concat({id:sub(1, 8), id:sub(9, 12), id:sub(13, 16), id:sub(17, 20), id:sub(21)}, '-')
end

-- Insert items from ordinal `first` on. `fields` are names and values that they share.
local function insert_items(batch, fields, run_at, first, ids, args)
  fields[#fields + 1] = 'batch'
  fields[#fields + 1] = batch
  local spec = spec_of(fields)
  for index, id in ipairs(ids) do
    insert_job(spec, id, args[index], run_at, first + index - 1)
  end
  note_queue(spec.queue)
end

-- Note a slice that was appended.
local function note_slice(batch, first, count, hash)
  local key = batch_key(batch)
  call('HSET', batch_key(batch, 'slices'), first, count .. ':' .. hash)
  call('HINCRBY', key, 'appended', count)
  local reach = tonumber(call('HGET', key, 'reach') or 0)
  call('HSET', key, 'reach', math.max(reach, first + count))
end

-- Fix the total of a batch.
local function seal(batch, total)
  call('HSET', batch_key(batch), 'state', 'sealed', 'total', total, 'sealed_at', NOW_TEXT)
end

-- Begin the next round of a batch, `open` for more items or `sealed` for retries.
local function begin_round(batch, state)
  local key = batch_key(batch)
  call('HSET', key, 'state', state)
  call('HINCRBY', key, 'round', 1)
  call('HDEL', key, 'outcome', 'closed_at')
  call('ZREM', ROOT .. 'batches:closed', batch)
  call('SADD', ROOT .. 'batches:unclosed', batch)
end
