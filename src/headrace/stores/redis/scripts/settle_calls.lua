#!lua flags=allow-oom
-- Record how calls of models ended, with their answers, and add up what they used, once for each call.
-- Arguments: JSON of each settlement (`ledger_rows.py`) and its answer, empty where it has none, in turn. Returns for
-- each what stands under its key in the end: the text, 1 for its own answer, 0 for nothing.
-- Keys: call, calls, calls_of, held, live, flying, answer, answers, spool, sum, sums, used, orphans.
-- Complexity: O(N log M).
-- include ledger, spooling
local standing, told = {}, {}

-- Store an answer where its key has none, or in the place of that.
local function keep(key, answer, replace)
  local stored = replace and call('SET', ROOT .. 'answer:' .. key, answer)
    or call('SET', ROOT .. 'answer:' .. key, answer, 'NX')
  if stored then
    call('ZADD', ROOT .. 'answers', NOW_TEXT, key)
    standing[key] = answer
  end
  forget_parts(key)
end

local function add_ended(id, new, ending)
  new.opened_at = NOW_TEXT
  list_call(id, new)
  write_end(id, new, ending)
end

local function settle(id, row, said)
  if not row then
    if said.used then
      add_ended(id, said.call, said.ending)
    end
  elseif row.state == 'prepared' then
    remove_call(id, row)
  elseif is_live(row.state) or row.state == 'orphaned' and said.ending.state == 'settled' then
    end_call(id, row, said.ending)
  end
end

for index = 2, #ARGV, 2 do
  local said, answer = cjson.decode(ARGV[index]), ARGV[index + 1]
  local row = read_call(said.id)
  if answer ~= '' then
    keep(said.call.key, answer, said.replace and not (row and row.state == 'settled'))
  end
  settle(said.id, row, said)
  told[#told + 1] = {key = said.call.key, own = answer}
end
write_sums()
for index, one in ipairs(told) do
  local answer = standing[one.key] or call('GET', ROOT .. 'answer:' .. one.key)
  told[index] = answer and (answer == one.own and 1 or answer) or 0
end
return told
