#!lua
-- Insert copies of failed jobs of a queue that were not retried before, oldest first; those of batches being cancelled
-- are passed over. Arguments: queue, place to begin at, time up to which they failed (or +inf), then ids for the copies,
-- ascending. Returns {next place or -1, ids used}.
-- Keys: dead, those of an insert, batch. Complexity: O(N log M).
-- include retrying
local queue, place = ARGV[2], tonumber(ARGV[3])
local made, wanted = {}, #ARGV - 4
local dead = ROOT .. 'dead:' .. queue
-- They are in the order in which they failed.
local last = math.min(place + wanted, call('ZCOUNT', dead, '-inf', ARGV[4])) - 1
local ids = last < place and {} or call('ZRANGE', dead, place, last)
for _, id in ipairs(ids) do
  local row = read_ended(id)
  if batch_cancelling(row) then
    place = place + 1
  else
    made[#made + 1] = ARGV[5 + #made]
    retry_job(id, row, made[#made])
  end
end
flush()
return {#ids < wanted and -1 or place, made}
