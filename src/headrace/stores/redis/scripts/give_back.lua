#!lua flags=allow-oom
-- Return units that were not used, at most up to the burst. Arguments: names and units in turn. Keys: bucket.
-- Complexity: O(N).
-- include buckets
for index = 2, #ARGV, 2 do
  local bucket = bucket_of(ARGV[index])
  if bucket then
    change_level(bucket, tonumber(ARGV[index + 1]))
  end
end
write_buckets()
