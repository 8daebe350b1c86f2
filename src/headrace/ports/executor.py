"""The executor port: where handler code runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID


def _no_activity() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Call:
    """One attempt to execute. (job_id, attempt, session) is its fence."""

    job_id: UUID
    attempt: int
    session: UUID
    task: str
    args: str
    #: Seconds the attempt may run.
    timeout: float
    #: Where another process finds the task: "module:qualname", or "path.py:qualname".
    target: str
    #: Runs the handler in this process: a coroutine function for async handlers, a function for sync ones.
    invoke: Callable[[], Any]
    #: Called when a checkpoint or a paid answer was stored.
    on_activity: Callable[[], None] = field(default=_no_activity)


class Executor(Protocol):
    """Runs calls. Cancelling `run` stops the handler where that is possible."""

    async def run(self, call: Call) -> Any:
        """Run the handler to its end and return what it returned; its exceptions pass through.

        Raises ExecutorCrashedError when the process that ran it died, TaskTimeoutError when it ran too long.
        """
        ...

    async def close(self) -> None:
        """End idle workers; running calls are killed."""
        ...
