#!lua flags=allow-oom
-- End attempts of a session, each under its fence (id, attempt, session, running): final, or sent back.
-- Arguments: session, JSON list of completions, see lib/completing.lua. Returns the positions of those refused.
-- Keys: job, running, deadlines, holds, ended, dead, attempts, log, ready, lane, scheduled, parked, sleepers, signal, batch, run,
-- runs, unsettled, those of an insert. Complexity: O((N + E) log M), E what the effects have.
-- include completing
local refused = complete_jobs(ARGV[2], cjson.decode(ARGV[3]))
flush()
return refused
