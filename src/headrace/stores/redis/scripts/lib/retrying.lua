-- Copies of final jobs that stand for them from then on. A copy keeps what was specified and has its attempts before it.
-- include intake, batches
local COPIED = {'task', 'queue', 'priority', 'max_attempts', 'timeout', 'once', 'gate', 'cost', 'batch',
  'ordinal', 'args', 'state', 'retried_by', 'run', 'node'}
-- The last of these are not the copy's: a job of a run is repeated by its run alone.
local KEPT = #COPIED - 5

local function read_ended(id)
  local row = {}
  for index, value in ipairs(call('HMGET', job_key(id), unpack(COPIED))) do
    row[COPIED[index]] = value
  end
  return row
end

-- Whether the batch of a job takes no more jobs because it is being cancelled.
local function batch_cancelling(row)
  return row.batch and call('SISMEMBER', ROOT .. 'batches:cancelling', row.batch) == 1
end

-- Insert the copy `copy_id` of the final job `id`, and let it count in its batch in place of that.
local function retry_job(id, row, copy_id)
  local fields = {'retry_of', id}
  for index = 1, KEPT do
    local name = COPIED[index]
    if row[name] and name ~= 'ordinal' then
      fields[#fields + 1] = name
      fields[#fields + 1] = row[name]
    end
  end
  if row.batch then
    if call('HGET', batch_key(row.batch), 'state') == 'closed' then
      begin_round(row.batch, 'sealed')
    end
    call('SREM', batch_key(row.batch, row.state), id)
    call('SADD', batch_key(row.batch, 'retried'), id)
  end
  insert_job(spec_of(fields), copy_id, row.args, 0, row.ordinal)
  call('HSET', job_key(id), 'retried_by', copy_id)
  call('ZREM', ROOT .. 'dead:' .. row.queue, id)
end
