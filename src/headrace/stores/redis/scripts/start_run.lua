#!lua
-- Store a run, the snapshot of its graph and its first jobs, all or nothing; one whose id or key is known is left alone.
-- Arguments: id, workflow, key or empty, body hash, JSON {fields, state, snapshot, graph, specs, jobs}: `fields` names and
-- values of the record, specs and jobs as in lib/effects.lua. Returns {started, known or conflict, id of the run stored}.
-- Keys: run, runs, key, snapshot, those of an insert. Complexity: O(N log M), N the jobs.
-- include effects
local id, workflow, key, hash = unpack(ARGV, 2, 5)
local new, name = cjson.decode(ARGV[6]), nil
if run_state(id) then
  return {'known', id}
end
if key ~= '' then
  name = run_name(workflow, key)
  local stored = call('GET', name)
  if stored then
    return {call('HGET', run_key(stored), 'body_hash') == hash and 'known' or 'conflict', stored}
  end
  call('SET', name, id)
  call('HSET', run_key(id), 'key', key, 'body_hash', hash)
end
call('HSET', run_key(id), 'workflow', workflow, 'state', new.state, 'snapshot', new.snapshot, 'created_at', NOW_TEXT,
  unpack(new.fields))
index_run(id, new.state, workflow, NOW_TEXT)
use_snapshot(new.snapshot, new.graph)
insert_nodes(new.specs, new.jobs)
flush()
return {'started', id}
