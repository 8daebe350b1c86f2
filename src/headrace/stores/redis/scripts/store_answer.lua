#!lua flags=allow-oom
-- Keep a paid answer unless its key is taken; return the one that stands. Arguments: key, answer.
-- Keys: answer, answers. Complexity: O(log A).
-- include keys
local key = ROOT .. 'answer:' .. ARGV[2]
if call('SET', key, ARGV[3], 'NX') then
  call('ZADD', ROOT .. 'answers', NOW_TEXT, ARGV[2])
end
return call('GET', key)
