#!lua flags=allow-oom
-- Override a rate, or, with empty figures, return to what is declared. Arguments: name, units per second, burst.
-- Keys: buckets, bucket, gated. Complexity: O(1).
-- include limits
if ARGV[3] == '' then
  if bucket_of(ARGV[2]) then
    set_rate(ARGV[2], 'set_', nil, nil, false)
  end
else
  set_rate(ARGV[2], 'set_', ARGV[3], ARGV[4], false)
  gate_queue_of(ARGV[2])
end
