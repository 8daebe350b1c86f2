#!lua
-- Store what an app declares; what operators set stays in force, levels and records stay. Arguments: JSON of
-- {caps: {name: cap}, rates: {name: [per_second, burst]}, breakers: {key: {names and values of the rule}}}.
-- Keys: caps:declared, buckets, bucket, breakers, breaker, gated. Complexity: O(N).
-- include limits
local declared = cjson.decode(ARGV[2])
for name, cap in pairs(declared.caps) do
  call('HSET', ROOT .. 'caps:declared', name, cap)
  gate_queue_of(name)
end
for name, rate in pairs(declared.rates) do
  set_rate(name, '', rate[1], rate[2], false)
  gate_queue_of(name)
end
for key, rule in pairs(declared.breakers) do
  call('SADD', ROOT .. 'breakers', key)
  call('HSETNX', ROOT .. 'breaker:' .. key, 'state', 'closed')
  call('HDEL', ROOT .. 'breaker:' .. key, 'error_rate')
  call('HSET', ROOT .. 'breaker:' .. key, unpack(rule))
end
