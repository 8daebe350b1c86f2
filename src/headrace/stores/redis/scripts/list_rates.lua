#!lua flags=no-writes
-- Return all rate limits as they stand, by name: a list of {name, per_second, burst, set_per_second, set_burst, level,
-- closed_until}. Keys: buckets, bucket. Complexity: O(N log N).
-- include buckets
local names, rows = call('SMEMBERS', ROOT .. 'buckets'), {}
table.sort(names)
for _, name in ipairs(names) do
  local row = call('HMGET', ROOT .. 'bucket:' .. name, 'per_second', 'burst', 'set_per_second', 'set_burst', 'closed_until')
  rows[#rows + 1] = {name, row[1], row[2], row[3], row[4], exactly(bucket_of(name).level or 0), row[5]}
end
return rows
