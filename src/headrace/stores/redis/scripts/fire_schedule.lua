#!lua
-- Move a schedule on and insert the jobs of its fire times, if it still is as its mover saw it, the session leads, and
-- every time has come. Arguments: session and term of the leader, name, rule, after_at as it was seen, the new after_at
-- and next_at, JSON list of {fields of the specification, id, arguments, run_at, fire time}. Returns the ids inserted.
-- Keys: leader, schedule, fires, fired, those of an insert. Complexity: O(N log M).
-- include terms, firing
local name, rule, seen_at, after_at, next_at = unpack(ARGV, 4, 8)
local key, made, fires = schedule_key(name), {}, cjson.decode(ARGV[9])
local row = call('HMGET', key, 'rule', 'after_at', 'paused')
if not leads(ARGV[2], ARGV[3]) or row[1] ~= rule or row[2] ~= seen_at or row[3] then
  return made
end
for _, fire in ipairs(fires) do
  if tonumber(fire[5]) > NOW then
    return made
  end
end
for _, fire in ipairs(fires) do
  local fields, id, args, run_at, fire_at = unpack(fire)
  if call('SISMEMBER', ROOT .. 'fired:' .. name, fire_at) == 0 then
    insert_fire(spec_of(fields), id, args, run_at)
    note_fire(name, id, fire_at, '0')
    made[#made + 1] = id
  end
end
call('HSET', key, 'after_at', after_at, 'next_at', next_at)
flush()
return made
