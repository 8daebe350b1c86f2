#!lua flags=no-writes
-- Return how buckets that have a rate stand: a list of {name, level, microseconds for which nothing passes}. Arguments:
-- names. Keys: bucket. Complexity: O(N).
-- include buckets
local rows = {}
for index = 2, #ARGV do
  local bucket = bucket_of(ARGV[index])
  if bucket and bucket.rate then
    rows[#rows + 1] = {bucket.name, exactly(bucket.level), text(math.max(0, (bucket.closed_until or 0) - NOW))}
  end
end
return rows
