#!lua flags=allow-oom
-- Move scheduled jobs that are due to ready, those due longest first, at the place of their due time.
-- Arguments: limit. Returns {how many, the queues that gained one}.
-- Keys: queues, scheduled, job, ready, lane. Complexity: O(Q + N log M), Q the queues.
-- include waiting
local limit, due = tonumber(ARGV[2]), {}
for _, queue in ipairs(call('SMEMBERS', ROOT .. 'queues')) do
  local found = call('ZRANGE', ROOT .. 'scheduled:' .. queue, '-inf', NOW_TEXT, 'BYSCORE', 'LIMIT', 0, limit, 'WITHSCORES')
  for index = 1, #found, 2 do
    due[#due + 1] = {id = found[index], run_at = tonumber(found[index + 1]), queue = queue}
  end
end
table.sort(due, function(one, other)
  return one.run_at < other.run_at or one.run_at == other.run_at and one.id < other.id
end)
local queues, names, count = {}, {}, math.min(limit, #due)
for index = 1, count do
  local id, queue = due[index].id, due[index].queue
  local key = job_key(id)
  local row = call('HMGET', key, 'priority', 'gate', 'attempt', 'sort_at')
  local job = {state = 'scheduled', queue = queue, priority = row[1], gate = row[2], attempt = row[3]}
  local place = keeps_place(job) and row[4] or text(due[index].run_at - head_start(job))
  leave_waiting(id, job)
  call('HSET', key, 'state', 'ready', 'sort_at', place)
  enter_ready(id, job, place)
  if not queues[queue] then
    queues[queue] = true
    names[#names + 1] = queue
  end
end
flush()
return {count, names}
