#!lua flags=allow-oom
-- End attempts of a session, and claim others in the same step. Arguments: session, JSON list of completions, queue,
-- limit, place to go on behind. Returns {positions refused, answer of claim_jobs}.
-- Keys: those of complete_jobs and claim_jobs. Complexity: O((N + E) log M), E what the effects have.
-- include completing, claiming
local refused = complete_jobs(ARGV[2], cjson.decode(ARGV[3]))
-- Before the claim: what was sent back may be claimed again.
flush()
local rows = claim_jobs(ARGV[2], ARGV[4], tonumber(ARGV[5]), ARGV[6], ARGV[7])
flush()
return {refused, rows}
