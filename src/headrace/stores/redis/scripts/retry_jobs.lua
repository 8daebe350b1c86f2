#!lua
-- Insert copies of failed or cancelled jobs that were not retried, all in one step; those of batches being cancelled and
-- those of runs are left out. Arguments: JSON list of {id, arguments in place of its own or empty}, then ids for the copies, ascending.
-- Returns ids of jobs and of their copies in turn. Keys: those of an insert, dead, batch. Complexity: O(N log M).
-- include retrying
local made = {}
for _, wanted in ipairs(cjson.decode(ARGV[2])) do
  local row = read_ended(wanted[1])
  local dead = row.state == 'failed' or row.state == 'cancelled'
  if dead and not row.run and not row.retried_by and not batch_cancelling(row) then
    local copy = ARGV[3 + #made / 2]
    if wanted[2] ~= '' then
      row.args = wanted[2]
    end
    retry_job(wanted[1], row, copy)
    made[#made + 1] = wanted[1]
    made[#made + 1] = copy
  end
end
flush()
return made
