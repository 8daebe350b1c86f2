-- What Headrace itself calls done: jobs in its history that succeeded.
SELECT count(*) FROM headrace.finished_jobs WHERE state = 'succeeded'
