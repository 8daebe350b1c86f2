#!lua flags=allow-oom
-- Set caps; keys that are not named keep theirs. Arguments: limit keys and caps in turn. Keys: caps. Complexity: O(N).
-- include keys
if #ARGV > 1 then
  call('HSET', ROOT .. 'caps', unpack(ARGV, 2))
end
