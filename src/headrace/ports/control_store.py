"""The control port: what operators and handles ask of single jobs and queues."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol
from uuid import UUID

from headrace.model.backlog import Alarm, QueueState
from headrace.model.job import CancelAnswer


class ControlStore(Protocol):
    """Commands on jobs and queues."""

    async def cancel_job(self, job_id: UUID) -> CancelAnswer:
        """Cancel a job that has not started, or ask the worker of a running one. Raises NotFoundError."""
        ...

    async def retry_job(self, job_id: UUID) -> UUID:
        """Insert a copy of a failed or cancelled job (`retry_of`) and return its id.

        A job retried before returns that retry's id. A job of a batch opens a new round of it. Raises
        NotFoundError; InvalidInputError when the job is not failed or cancelled.
        """
        ...

    async def retry_jobs(self, jobs: Mapping[UUID, str | None]) -> dict[UUID, UUID]:
        """Retry jobs as `retry_job` does, all in one step, and return the new id of each that was retried.

        The text given for a job takes the place of its arguments; None keeps them. The copies are claimed in the order
        of `jobs`. Left out: what is not failed or cancelled, what was retried before, what belongs to a batch that is
        being cancelled, and what is not there.
        """
        ...

    async def retry_queue(self, queue: str, *, limit: int, until: datetime | None = None) -> list[UUID]:
        """Retry up to `limit` failed jobs of a queue that were not retried before; return the new ids.

        `until`: only those that had failed by then.
        """
        ...

    async def set_queue_paused(self, queue: str, *, paused: bool, reason: str | None = None) -> None:
        """Pause or resume claims of a queue; running jobs go on."""
        ...

    async def set_queue_closed(self, queue: str, *, closed: bool) -> None:
        """Close or open the intake of a queue. The store keeps the word; who enqueues asks `queue_states` for it."""
        ...

    async def set_alarms(self, alarms: Mapping[str, Alarm]) -> None:
        """Set when the backlog of each queue is an alarm; queues that are not named keep theirs."""
        ...

    async def queue_states(self) -> dict[str, QueueState]:
        """Return what is stored of each queue for which anything was set; cheap, for it is asked every second."""
        ...
