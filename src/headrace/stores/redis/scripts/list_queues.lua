#!lua flags=no-writes
-- Return the names of the queues that had a job or have a setting, and the queues of live sessions as JSON texts.
-- Keys: queues, settings, sessions, session. Complexity: O(Q + S).
-- include keys
local workers = {}
for _, session in ipairs(call('ZRANGE', ROOT .. 'sessions', '(' .. NOW_TEXT, '+inf', 'BYSCORE')) do
  workers[#workers + 1] = call('HGET', ROOT .. 'session:' .. session, 'queues')
end
return {call('SUNION', ROOT .. 'queues', ROOT .. 'settings'), workers}
