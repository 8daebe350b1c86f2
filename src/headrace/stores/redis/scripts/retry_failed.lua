#!lua
-- Open a round of a closed batch with copies of its failed items, in their order; with none, change nothing.
-- Arguments: batch, then ids for the copies, ascending. Returns {copied}, {-1, state} for a batch that is not closed
-- (empty: there is none), or {-2, wanted} where there are fewer ids than failed items.
-- Keys: batch, batches, those of an insert, dead. Complexity: O(N log M), N the failed items.
-- include retrying
local batch = ARGV[2]
local state = call('HGET', batch_key(batch), 'state')
if state ~= 'closed' then
  return {-1, state or ''}
end
local ids, ordinals = call('SMEMBERS', batch_key(batch, 'failed')), {}
if #ids > #ARGV - 2 then
  return {-2, #ids}
end
for _, id in ipairs(ids) do
  ordinals[id] = tonumber(call('HGET', job_key(id), 'ordinal'))
end
table.sort(ids, function(one, other) return ordinals[one] < ordinals[other] end)
for index, id in ipairs(ids) do
  retry_job(id, read_ended(id), ARGV[2 + index])
end
flush()
return {#ids}
