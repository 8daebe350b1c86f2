"""The Celery executor: handlers run on a farm of Celery workers, and the store stays the ledger.

A message names a job, an attempt and a session, and nothing else. What came of the attempt is a step of the job, stored
once under that fence; what the broker holds besides messages are hints and who is alive. All of it may be lost.
"""
