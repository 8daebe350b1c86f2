#!lua flags=no-writes
-- A page of failed jobs, newest first: of each queue the newest `limit` before a place and not older than `within`, of
-- these the newest. Arguments: queue and task (or empty), within (microseconds, or empty), the place (finished_at and id,
-- or empty), limit. Returns {looked at, finished_at and id of the last one, rows {id, finished_at, task, queue, batch,
-- error, run, node} of those that were not retried}.
-- Keys: queues, ended, job. Complexity: O(Q log M + N log N).
-- include ranks
local wanted_queue, task, within, before_at, before_id, limit = unpack(ARGV, 2, 7)
limit = tonumber(limit)
local since = within ~= '' and NOW - within or 0
local found = {}
for _, queue in ipairs(wanted_queue ~= '' and {wanted_queue} or call('SMEMBERS', ROOT .. 'queues')) do
  local key = ROOT .. 'ended:failed:' .. queue
  local stop = (before_at ~= '' and rank_of(key, before_at, before_id) or call('ZCARD', key)) - 1
  local page = stop >= 0 and call('ZRANGE', key, math.max(0, stop - limit + 1), stop, 'WITHSCORES') or {}
  for index = 1, #page, 2 do
    local at = tonumber(page[index + 1])
    if at >= since then
      found[#found + 1] = {id = page[index], at = at}
    end
  end
end
table.sort(found, function(one, other)
  return one.at > other.at or one.at == other.at and one.id > other.id
end)
local rows, last = {}, math.min(limit, #found)
for index = 1, last do
  local row = call('HMGET', job_key(found[index].id), 'task', 'queue', 'batch', 'error', 'retried_by', 'run', 'node')
  if row[1] and not row[5] and (task == '' or row[1] == task) then
    rows[#rows + 1] = {found[index].id, text(found[index].at), row[1], row[2], row[3], row[4], row[6], row[7]}
  end
end
return {last, last > 0 and text(found[last].at) or '', last > 0 and found[last].id or '', rows}
