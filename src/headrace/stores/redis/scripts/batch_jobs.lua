#!lua flags=no-writes
-- Return ids of items of a batch with when they came: some that live, and the last that ended.
-- Arguments: batch, how many of each. Returns {created_at, id, …}. Keys: batch, job. Complexity: O(N).
-- include keys
local found, most = {}, tonumber(ARGV[3])
local function take(ids)
  for _, id in ipairs(ids) do
    found[#found + 1] = call('HGET', job_key(id), 'created_at')
    found[#found + 1] = id
  end
end
take(call('SRANDMEMBER', batch_key(ARGV[2], 'live'), most))
take(call('ZRANGE', batch_key(ARGV[2], 'ended'), 0, most - 1, 'REV'))
return found
