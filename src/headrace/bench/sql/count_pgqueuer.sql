-- What pgqueuer calls done: its log of successes.
SELECT count(*) FROM pgqueuer_log WHERE status = 'successful'
