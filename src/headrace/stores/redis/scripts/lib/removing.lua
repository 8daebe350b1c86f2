-- Removing what is older than its retention.

-- Whether a final job of a run is settled, its batch is closed, and it repeats none that is kept: without its retry that
-- one would count again. `row` has batch, retry_of and run.
local function removable(id, row)
  if row[3] and call('ZSCORE', ROOT .. 'unsettled', id) then
    return false
  end
  if row[2] and call('EXISTS', job_key(row[2])) == 1 then
    return false
  end
  return not row[1] or call('HGET', batch_key(row[1]), 'state') == 'closed'
end

-- Remove a final job with its attempts and steps. `row` has its batch first.
local function remove_job(id, queue, state, row)
  call('DEL', job_key(id), ROOT .. 'attempts:' .. id, log_key(id), ROOT .. 'steps:' .. id)
  later('ZREM', ROOT .. 'ended:' .. state .. ':' .. queue, id)
  later('ZREM', ROOT .. 'jobs:' .. queue, id)
  if state == 'failed' then
    later('ZREM', ROOT .. 'dead:' .. queue, id)
  end
  if row[1] then
    later('ZREM', batch_key(row[1], 'ended'), id)
    for _, part in ipairs({'failed', 'cancelled', 'retried'}) do
      later('SREM', batch_key(row[1], part), id)
    end
  end
end
