#!lua
-- Store a signal, unless its key had one before, and make the jobs ready that are parked on it. Arguments: key, JSON text.
-- Returns 0 for a key that had its signal, else {queues of these jobs}.
-- Keys: signal, signals, sleepers, job, parked, ready, lane, keys. Complexity: O(N log M), N the jobs.
-- include waking
local key = ARGV[2]
if call('HSETNX', signal_key(key), 'payload', ARGV[3]) == 0 then
  return 0
end
call('HSET', signal_key(key), 'sent_at', NOW_TEXT)
call('ZADD', ROOT .. 'signals', NOW_TEXT, key)
local queues, names = {}, {}
for _, id in ipairs(call('SMEMBERS', sleepers_key(key))) do
  local queue = wake(id, NOW)
  if queue and not queues[queue] then
    queues[queue] = true
    names[#names + 1] = queue
  end
end
flush()
return names
