#!lua
-- Take units of every bucket, or, if one has not enough, of none; with `some` of each what is there, if that is its
-- least. Arguments: 1 or 0 for `some`, then names, units and leasts in turn. Returns {microseconds to wait for what is
-- missing, names and units given in turn, names that are not declared}. Keys: bucket. Complexity: O(N).
-- include buckets
local some, wait, unknown, rated = ARGV[2] == '1', 0, {}, {}
for index = 3, #ARGV, 3 do
  local bucket = bucket_of(ARGV[index])
  if bucket and bucket.rate then
    local units = tonumber(ARGV[index + 1])
    rated[#rated + 1] = {bucket = bucket, units = units, least = tonumber(ARGV[index + 2])}
    wait = math.max(wait, wait_for(bucket, units))
  else
    unknown[#unknown + 1] = ARGV[index]
  end
end
local given = {}
if some or wait == 0 and #unknown == 0 then
  local again
  for _, one in ipairs(rated) do
    local bucket = one.bucket
    local units = one.units
    if some then
      units = wait_for(bucket, one.least) > 0 and 0 or math.max(one.least, math.min(units, bucket.level))
    end
    change_level(bucket, -units)
    given[#given + 1] = bucket.name
    given[#given + 1] = exactly(units)
    if units < one.units then
      local lack = wait_for(bucket, math.min(one.units - units, one.least > 0 and one.least or one.units))
      again = lack > 0 and math.min(again or lack, lack) or again
    end
  end
  wait = again or 0
end
write_buckets()
return {text(wait), given, unknown}
