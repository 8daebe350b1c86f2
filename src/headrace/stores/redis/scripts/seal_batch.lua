#!lua flags=allow-oom
-- Seal the open round of a batch, or check that the round named ended with this total (`model.batch.former_total`).
-- Arguments: batch, total, name of the round or empty. Returns -2 for no batch, -1 where it is as asked for, else the
-- total that was expected. Keys: batch. Complexity: O(R), R the rounds.
-- include intake, batches
local batch, total, name = ARGV[2], tonumber(ARGV[3]), ARGV[4]
local row = call('HMGET', batch_key(batch), 'state', 'total', 'appended')
if not row[1] then
  return -2
end
local rounds = call('HGETALL', batch_key(batch, 'rounds'))
local known, firsts, mine = tonumber(row[2] or row[3]), {}, nil
for index = 1, #rounds, 2 do
  local number, first = string.match(rounds[index + 1], '^(%d+):(%d+)$')
  firsts[#firsts + 1] = {tonumber(number), tonumber(first)}
  if rounds[index] == name then
    mine = tonumber(number)
  end
end
table.sort(firsts, function(one, other) return one[1] < other[1] end)
local former = nil
for _, round in ipairs(firsts) do
  if name == '' and total ~= known and round[2] == total then
    former = total
  elseif mine and round[1] > mine and not former then
    former = round[2]
  end
end
if total ~= (former or known) then
  return former or known
end
if not former and takes_items(row[1]) then
  seal(batch, row[3])
end
return -1
