"""The executor port: where handler code runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from headrace.model.job import ClaimedJob


@dataclass(slots=True)
class Call:
    """One attempt to execute. (job.id, job.attempt, session) is its fence. Nobody changes it once it is made."""

    job: ClaimedJob
    session: UUID
    #: Seconds the attempt may run.
    timeout: float
    #: Where another process finds the task: "module:qualname", or "/path.py:qualname".
    target: str
    #: Runs the handler in this process: awaitable for async handlers, a value for sync ones.
    invoke: Callable[[], Any]
    #: Call it when the handler stored a checkpoint or an answer, or reported activity.
    on_activity: Callable[[], None]


class Executor(Protocol):
    """Runs calls. Cancelling `run` stops the handler where that is possible."""

    async def run(self, call: Call) -> Any:
        """Run the handler to its end.

        Returns what the handler returned, or, where it ran elsewhere together with its retry policy, the finished
        Completion. Exceptions of the handler pass through. Raises ExecutorCrashedError when the process that ran
        it died.
        """
        ...

    async def close(self) -> None:
        """End idle workers; running calls are killed."""
        ...


class Farm(Executor, Protocol):
    """An executor of other processes, whose slots come and go and are shared with other workers."""

    def serves(self, queue: str) -> bool:
        """Whether the jobs of a queue run there."""
        ...

    async def begin(self) -> None:
        """Do what a worker should have behind it before it has a lease to keep; within seconds, and raises nothing."""
        ...

    def room(self, queue: str, taken: Mapping[str, int]) -> int:
        """Return how many more jobs of a queue it can start; `taken`: slots in use by this worker, by queue.

        From memory: it is asked before every claim.
        """
        ...

    def want(self, queue: str, slots: int) -> None:
        """Take in how many jobs of a queue this worker would run there at once: a farm that can grow may ask for room.

        Called once at the start and with every change, for queues with elastic slots. Returns at once, raises nothing.
        """
        ...
