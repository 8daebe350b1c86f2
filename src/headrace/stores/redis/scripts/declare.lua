#!lua
-- Set rates; a level that is known is kept, a bucket that was not known starts empty. Arguments: name, units per second
-- and burst in turn. Keys: buckets, bucket. Complexity: O(N).
-- include buckets
for index = 2, #ARGV, 3 do
  set_rate(ARGV[index], '', ARGV[index + 1], ARGV[index + 2], true)
end
