#!lua
-- Take units of every bucket, or, if one has not enough, of none; with `some` of each what is there. Arguments: 1 or 0
-- for `some`, then names and units in turn. Returns {microseconds to wait for what is missing, names and units given in
-- turn, names that are not declared}. Keys: bucket. Complexity: O(N).
-- include buckets
local some, wait, unknown, rated = ARGV[2] == '1', 0, {}, {}
for index = 3, #ARGV, 2 do
  local bucket = bucket_of(ARGV[index])
  if bucket and bucket.rate then
    local units = tonumber(ARGV[index + 1])
    rated[#rated + 1] = {bucket = bucket, units = units}
    wait = math.max(wait, wait_for(bucket, units))
  else
    unknown[#unknown + 1] = ARGV[index]
  end
end
local given = {}
if some or wait == 0 and #unknown == 0 then
  wait = 0
  for _, one in ipairs(rated) do
    local bucket = one.bucket
    local closed = bucket.closed_until and bucket.closed_until > NOW
    local units = some and math.min(one.units, closed and 0 or math.max(0, bucket.level)) or one.units
    change_level(bucket, -units)
    given[#given + 1] = bucket.name
    given[#given + 1] = exactly(units)
    if units < one.units then
      wait = math.max(wait, wait_for(bucket, one.units - units))
    end
  end
  write_buckets()
end
return {text(wait), given, unknown}
