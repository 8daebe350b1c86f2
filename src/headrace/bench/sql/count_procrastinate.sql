-- What procrastinate calls done.
SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'
