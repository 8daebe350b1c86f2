#!lua
-- Make a namespace where there never was one, or, adopting, put in force what is there now, be it nothing.
-- Sent by EVAL, before there is an epoch that other scripts could look for. KEYS[1]: the root of the namespace.
-- Arguments: id for the epoch, layout, 1 to adopt. Returns {verdict, epoch}: `made`; `known`, it was there; `lost`, the
-- epoch is gone beside other keys. Keys: about, epoch:ID; reads queues, sessions, leader, batches, commits, workflows,
-- signals, feeds, tokens. Complexity: O(1).
local ROOT = KEYS[1] .. ':'
local about, adopting = ROOT .. 'about', ARGV[3] == '1'
local epoch = redis.call('HGET', about, 'epoch')
local known = epoch and redis.call('EXISTS', ROOT .. 'epoch:' .. epoch) == 1
if known and not adopting then
  return {'known', epoch}
end
if not known then
  local traces = redis.call('EXISTS', about, ROOT .. 'queues', ROOT .. 'sessions', ROOT .. 'leader', ROOT .. 'batches',
    ROOT .. 'commits', ROOT .. 'workflows', ROOT .. 'signals', ROOT .. 'feeds', ROOT .. 'tokens')
  if traces > 0 and not adopting then
    return {'lost', ''}
  end
  epoch = ARGV[1]
  local time = redis.call('TIME')
  redis.call('HSET', about, 'epoch', epoch, 'layout', ARGV[2], 'created_at', time[1])
  redis.call('SET', ROOT .. 'epoch:' .. epoch, time[1])
end
if adopting then
  redis.call('HSET', about, 'adopted', epoch)
end
return {known and 'known' or 'made', epoch}
