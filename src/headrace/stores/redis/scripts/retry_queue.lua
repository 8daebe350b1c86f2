#!lua
-- Insert copies of failed jobs of a queue that were not retried before, oldest first; those of batches being cancelled
-- are passed over. Arguments: queue, place to begin at, then ids for the copies, ascending. Returns {next place or -1, ids used}.
-- Keys: dead, those of an insert, batch. Complexity: O(N log M).
-- include retrying
local queue, place = ARGV[2], tonumber(ARGV[3])
local made, wanted = {}, #ARGV - 3
local ids = call('ZRANGE', ROOT .. 'dead:' .. queue, place, place + wanted - 1)
for _, id in ipairs(ids) do
  local row = read_ended(id)
  if batch_cancelling(row) then
    place = place + 1
  else
    made[#made + 1] = ARGV[4 + #made]
    retry_job(id, row, made[#made])
  end
end
flush()
return {#ids < wanted and -1 or place, made}
