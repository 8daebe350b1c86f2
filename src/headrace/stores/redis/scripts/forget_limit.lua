#!lua flags=allow-oom
-- Remove the cap, the rate and the breaker of a name, of these kinds. Arguments: name, kinds. Returns those that were there.
-- Keys: caps:declared, caps:override, buckets, bucket, breakers, breaker. Complexity: O(1).
-- include keys
local name, found = ARGV[2], {}
local forget = {
  cap = function()
    return call('HDEL', ROOT .. 'caps:declared', name) + call('HDEL', ROOT .. 'caps:override', name)
  end,
  rate = function()
    return call('SREM', ROOT .. 'buckets', name) + call('DEL', ROOT .. 'bucket:' .. name)
  end,
  breaker = function()
    return call('SREM', ROOT .. 'breakers', name) + call('DEL', ROOT .. 'breaker:' .. name)
  end,
}
for index = 3, #ARGV do
  if forget[ARGV[index]]() > 0 then
    found[#found + 1] = ARGV[index]
  end
end
return found
