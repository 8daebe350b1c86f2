-- Closing batches: what their items have become decides, which is the size of sets that name them.
local function count_of(batch, part)
  return call('SCARD', batch_key(batch, part))
end

local function over_policy(batch, max_failed)
  return max_failed and count_of(batch, 'failed') > tonumber(max_failed)
end

local function succeeded_of(batch)
  return call('ZCARD', batch_key(batch, 'ended')) - count_of(batch, 'failed') - count_of(batch, 'cancelled')
    - count_of(batch, 'retried')
end

local function outcome_of(batch, state, over)
  if over then
    return 'failed'
  elseif state == 'cancelling' then
    return 'cancelled'
  end
  if count_of(batch, 'failed') + count_of(batch, 'cancelled') == 0 then
    return 'succeeded'
  end
  return succeeded_of(batch) > 0 and 'partial' or 'failed'
end

-- How a round of a batch ended, as callbacks are told: `model.batch.closing_facts`.
local function closing_facts(batch, outcome)
  local row = call('HMGET', batch_key(batch), 'round', 'total')
  return '{"round":' .. row[1] .. ',"outcome":"' .. outcome .. '","total":' .. row[2]
    .. ',"succeeded":' .. succeeded_of(batch) .. ',"failed":' .. count_of(batch, 'failed')
    .. ',"cancelled":' .. count_of(batch, 'cancelled') .. ',"closed_at":' .. NOW_TEXT .. '}'
end

-- Insert the callback of a close, if there is one, and return its queue or an empty text; more: its second argument,
-- with which it has a third one.
local function call_back(batch, outcome, on_close, more, callback)
  if not on_close then
    return ''
  end
  local spec = spec_of(cjson.decode(on_close))
  local others = more and ',' .. more .. ',' .. closing_facts(batch, outcome) or ''
  insert_job(spec, callback, '{"args":["' .. uuid_text(batch) .. '"' .. others .. '],"kwargs":{}}', 0)
  note_queue(spec.queue)
  return spec.queue
end

-- Close a batch that is sealed (or being cancelled) and has no live item, and return {id, outcome, callback's queue};
-- one over its policy with live items starts cancelling: {id, '', ''}. Nothing for any other, nor while its failed items
-- are being copied.
local function close_batch(batch, callback)
  local key = batch_key(batch)
  local row = call('HMGET', key, 'state', 'max_failed', 'on_close', 'retrying', 'on_close_more')
  local state, retrying = row[1], row[4] and tonumber(row[4]) > NOW
  if state ~= 'cancelling' and (state ~= 'sealed' or retrying) then
    return nil
  end
  local over = over_policy(batch, row[2])
  if count_of(batch, 'live') > 0 then
    if not over or state ~= 'sealed' then
      return nil
    end
    call('HSET', key, 'state', 'cancelling')
    call('SADD', ROOT .. 'batches:cancelling', batch)
    forget_pause(batch)
    return {batch, '', ''}
  end
  local outcome = outcome_of(batch, state, over)
  call('HSET', key, 'state', 'closed', 'closed_at', NOW_TEXT, 'outcome', outcome)
  call('SREM', ROOT .. 'batches:unclosed', batch)
  call('SREM', ROOT .. 'batches:cancelling', batch)
  call('ZADD', ROOT .. 'batches:closed', NOW_TEXT, batch)
  return {batch, outcome, call_back(batch, outcome, row[3], row[5], callback)}
end
