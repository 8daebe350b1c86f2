"""The inspect port: read models for handles, the command line and the service."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from headrace.model.attempt_log import AttemptLog
from headrace.model.dead_letter import DeadLetterPage, FailedAt
from headrace.model.job import AttemptRecord, JobState, JobView, Made
from headrace.model.session import SessionView
from headrace.model.stats import QueueStats, StoreInfo
from headrace.ports.inspect_batches import InspectBatches


class Inspect(InspectBatches, Protocol):
    """Reads only: jobs, queues, sessions, and the batches of `InspectBatches`."""

    async def get_job(self, job_id: UUID) -> JobView | None:
        """Return a job, finished or not."""
        ...

    async def get_attempts(self, job_id: UUID) -> list[AttemptRecord]:
        """Return the attempts of a job that failed or crashed, and the one that ended it, oldest first.

        Attempts that were released or snoozed left no record: their numbers are missing.
        """
        ...

    async def attempt_logs(self, job_id: UUID) -> list[AttemptLog]:
        """Return what handlers logged in the attempts of a job, oldest first; of attempts that logged nothing none.

        At most `model.attempt_log.MAX_ATTEMPTS` attempts have one. None has an attempt that was ended without its
        worker's word, by a rescue or the overdue sweep.
        """
        ...

    async def final_jobs(self, job_ids: Sequence[UUID]) -> dict[UUID, JobView]:
        """Return those of `job_ids` that are final; one query for all waiters of a process."""
        ...

    async def known_jobs(self, job_ids: Sequence[UUID]) -> frozenset[UUID]:
        """Return those of `job_ids` that exist in any state."""
        ...

    async def list_jobs(  # noqa: PLR0913 - keyword-only
        self,
        *,
        state: JobState | None = None,
        queue: str | None = None,
        task: str | None = None,
        batch_id: UUID | None = None,
        before: Made | None = None,
        limit: int = 50,
        brief: bool = False,
    ) -> list[JobView]:
        """Return jobs, newest first, from those made before `before`.

        A big store looks for those of a state, a queue or a task within bounds: what waits, runs or did not succeed is
        found, old successes that others outnumber may not be.

        `brief` reads them without arguments, result and usage, which may be 256 KiB each: they are None, whatever the
        job has, and the trace of its error is empty. For lists that show none of these.
        """
        ...

    async def dead_letters(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        within: timedelta | None = None,
        before: FailedAt | None = None,
        limit: int = 500,
    ) -> DeadLetterPage:
        """Return failed jobs that were not retried, the newest first, from what failed before `before`.

        `limit` bounds the failed jobs that are looked at, so that a page costs the same whatever the filters leave of
        it. `within` leaves out what failed longer ago, by the clock of the store.
        """
        ...

    async def queue_stats(self) -> list[QueueStats]:
        """Return every queue that has jobs, workers or a setting, by name; `QueueStats.estimated` says what is one."""
        ...

    async def waiting_jobs(self, queue: str, *, at_most: int) -> int:
        """Count the ready and scheduled jobs of a queue, no further than `at_most`.

        Cheap enough for whoever enqueues into a bounded queue: index entries only, `at_most` of them.
        """
        ...

    async def live_jobs(self, queue: str) -> dict[JobState, int]:
        """Count the jobs of a queue that are not final, exactly, by state; a state without jobs may be missing.

        Reads all that is not final in the store: for whoever waits for the end of a queue, a few times a minute.
        """
        ...

    async def list_sessions(self) -> list[SessionView]:
        """Return sessions, live ones first."""
        ...

    async def store_info(self) -> StoreInfo:
        """Say what the store is and what it guarantees."""
        ...
