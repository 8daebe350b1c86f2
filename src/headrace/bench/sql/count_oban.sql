-- What Oban calls done.
SELECT count(*) FROM oban_jobs WHERE state = 'completed'
