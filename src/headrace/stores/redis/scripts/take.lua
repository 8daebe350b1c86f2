#!lua
-- Take units of every bucket, or, if one has not enough, of none; with `some` of each what is there. Arguments: 1 or 0
-- for `some`, then names and units in turn. Returns {microseconds to wait, {names and units given in turn}, {unknown names}}.
-- Keys: bucket. Complexity: O(N).
-- include buckets
local some, wait, unknown, rated = ARGV[2] == '1', 0, {}, {}
for index = 3, #ARGV, 2 do
  local name, units = ARGV[index], tonumber(ARGV[index + 1])
  local bucket = bucket_of(name)
  if bucket and bucket.rate then
    local own = wait_for(bucket, units)
    wait = math.max(wait, own)
    rated[#rated + 1] = {bucket = bucket, units = units, wait = own}
  else
    unknown[#unknown + 1] = name
  end
end
local given = {}
if some or wait == 0 and #unknown == 0 then
  for _, one in ipairs(rated) do
    local closed = one.bucket.closed_until and one.bucket.closed_until > NOW
    local there = closed and 0 or math.max(0, one.bucket.level)
    local units = one.wait == 0 and one.units or math.min(there, one.units)
    change_level(one.bucket, -units)
    given[#given + 1] = one.bucket.name
    given[#given + 1] = exactly(units)
  end
  write_buckets()
end
return {text(wait), given, unknown}
