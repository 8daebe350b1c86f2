"""What stores say of attempts that ended without their worker's word, and when a job is poison."""

from __future__ import annotations

from headrace.model.job import JobError

#: Crashes of a job's own child process, without progress between them, that make it a dead letter.
MAX_LONE_CRASHES = 3

POISON = JobError("poison", f"the job's own process crashed {MAX_LONE_CRASHES} times without progress in between")
WORKER_LOST = JobError("worker_lost", "the worker that ran this attempt died")
#: Of an attempt that a farm had begun: its handler did not run in the process that died, so nothing is counted.
EXECUTOR_LOST = JobError("executor_lost", "the worker that had sent this attempt to a farm died")
OVERDUE = JobError("timeout", "the attempt ran far longer than its timeout and could not be stopped")
