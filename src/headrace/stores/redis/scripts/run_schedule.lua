#!lua
-- Insert a job of a schedule and note it as a fire by hand; one that is there already changes nothing. Arguments: name,
-- JSON list of the fields of the specification, id, arguments, run_at, fire time. Returns 0 where there is no such
-- schedule. Keys: schedule, fires, those of an insert. Complexity: O(log M).
-- include firing
local name, fields, id, args, run_at, fire_at = unpack(ARGV, 2, 7)
if call('EXISTS', schedule_key(name)) == 0 then
  return 0
end
if insert_fire(spec_of(cjson.decode(fields)), id, args, tonumber(run_at)) then
  note_fire(name, id, fire_at, '1')
end
flush()
return 1
