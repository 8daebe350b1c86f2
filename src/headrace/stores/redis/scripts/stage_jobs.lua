#!lua flags=allow-oom
-- Move scheduled jobs that are due, and parked ones whose time has come, to ready, those due longest first, at the place
-- of their due time. Arguments: limit. Returns {how many, the queues that gained one}.
-- Keys: queues, scheduled, parked, sleepers, job, ready, lane. Complexity: O(Q + N log M), Q the queues.
-- include waking
local limit, due = tonumber(ARGV[2]), {}
for _, queue in ipairs(call('SMEMBERS', ROOT .. 'queues')) do
  for _, kind in ipairs({'scheduled:', 'parked:'}) do
    local found = call('ZRANGE', ROOT .. kind .. queue, '-inf', NOW_TEXT, 'BYSCORE', 'LIMIT', 0, limit, 'WITHSCORES')
    for index = 1, #found, 2 do
      due[#due + 1] = {id = found[index], run_at = tonumber(found[index + 1])}
    end
  end
end
table.sort(due, function(one, other)
  return one.run_at < other.run_at or one.run_at == other.run_at and one.id < other.id
end)
local queues, names, count = {}, {}, math.min(limit, #due)
for index = 1, count do
  local queue = wake(due[index].id, due[index].run_at)
  if queue and not queues[queue] then
    queues[queue] = true
    names[#names + 1] = queue
  end
end
flush()
return {count, names}
