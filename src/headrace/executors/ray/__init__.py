"""The Ray executor: handlers run as tasks of a Ray cluster, and the store stays the ledger.

A task is told a job, an attempt and a session, and where it finds the app. Who began an attempt is a step of the job,
stored once under that fence; how it ended comes back as JSON. Ray is imported by the modules here that use it, and
they are imported only where a queue runs there.
"""
