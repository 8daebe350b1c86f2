#!lua
-- Insert jobs of several specifications, all or none; ids and keys that are stored already are left alone.
-- Arguments: JSON list of groups {spec, ids, args, run_ats, keys, hashes, formers, runs, nodes}: `spec` names and values
-- that the group's jobs share; run_ats 0 or microseconds; keys, formers, runs and nodes empty texts where a job has none;
-- all but `spec` may be empty; then the channel to hint on, if any, and what to say there. Returns {conflict 0 or 1, position, id, …}: which
-- jobs, counted from 1 over all groups, have their key's stored id.
-- Keys: job, jobs, queues, ready, lane, scheduled, key, keys, run. Complexity: O(N log M), M the ready jobs of the queue.
-- include intake
local LIFETIME = tonumber(ARGV[3])
local stored, answer, known, position = {}, {0}, {}, 0
local groups = cjson.decode(ARGV[2])

-- What a key stands for: by an earlier job of this call, or as stored and not expired.
local function find_key(name)
  if known[name] then
    return known[name][1], known[name][2]
  end
  local value = call('GET', name)
  if not value then
    return nil
  end
  local expires_at, id, hash = string.match(value, '^(%d+) (%S+) (.*)$')
  if tonumber(expires_at) <= NOW then
    return nil
  end
  return id, hash
end

for _, group in ipairs(groups) do
  group.spec = spec_of(group.spec)
  for index, key in ipairs(group.keys) do
    if key ~= '' then
      local name = ROOT .. 'key:job:' .. group.spec.task .. ':' .. key
      local id, hash = find_key(name)
      if id and hash ~= group.hashes[index] and (hash == '' or hash ~= group.formers[index]) then
        return {1}
      elseif id then
        stored[position + index] = id
      else
        known[name] = {group.ids[index], group.hashes[index]}
      end
    end
  end
  position = position + #group.ids
end

local expires_at = text(NOW + LIFETIME)
for name, value in pairs(known) do
  call('SET', name, expires_at .. ' ' .. value[1] .. ' ' .. value[2], 'PX', text(LIFETIME / 1000))
  later('ZADD', ROOT .. 'keys', expires_at, string.sub(name, #ROOT + 5))
end
position = 0
for _, group in ipairs(groups) do
  for index, id in ipairs(group.ids) do
    local found = stored[position + index]
    if found then
      answer[#answer + 1] = position + index
      answer[#answer + 1] = found
    else
      local run = group.runs[index]
      insert_job(group.spec, id, group.args[index], group.run_ats[index] or 0, nil, run ~= '' and run, group.nodes[index])
    end
  end
  note_queue(group.spec.queue)
  position = position + #group.ids
end
flush()
if ARGV[4] ~= '' then
  -- The jobs are stored: a user who may not tell of them has enqueued them all the same.
  redis.pcall('PUBLISH', ARGV[4], ARGV[5])
end
return answer
