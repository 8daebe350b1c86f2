"""Apps in memory: what they enqueue stays in this process and is gone with the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from headrace.app import App
from headrace.model.durations import format_duration
from headrace.model.errors import ConfigError, ResultTimeoutError
from headrace.model.job import JobView
from headrace.model.run import NODE_TASK, NODES_QUEUE, RUN_TASK, START_TASK, WORKFLOWS_QUEUE

if TYPE_CHECKING:
    from headrace.stores.memory.tables import MemoryTables


@contextmanager
def in_memory(app: App | None = None) -> Iterator[App]:
    """Put an app onto an empty store in memory until the block ends, whatever its settings and the environment name.

    The store outlives `async with app:` and `async with app.worker():`, also on several event loops, but not the block.
    Executors are those of this process; models stay as they are set. Without an `app` a new one is made. Raises
    ConfigError when the app is open.

    >>> import asyncio
    >>> from headrace import App
    >>> from headrace.testing import drain, in_memory
    >>> app = App("postgresql://db.example.org/shop")
    >>> @app.task
    ... async def double(number: int) -> int:
    ...     return 2 * number
    >>> async def work() -> None:
    ...     async with app:
    ...         await double.enqueue(21)
    ...     print([job.result for job in await drain(app)])
    >>> with in_memory(app):
    ...     asyncio.run(work())
    [42]
    """
    from headrace.wiring.lending import lend_memory

    app = App("memory://") if app is None else app
    with lend_memory(app):
        yield app


def tables_of(app: App) -> MemoryTables:
    """Return the tables of an app in memory. Raises ConfigError for any other app."""
    if app.lent is None:
        raise ConfigError(
            "the app is not in memory: use the fixture `headrace_app(app)`, or `with in_memory(app):` of "
            "headrace.testing; App('memory://') alone cannot be looked into"
        )
    return app.lent


def worked(app: App) -> tuple[set[str], set[str]]:
    """Return the queues that a worker of the app takes jobs from, and the tasks that it knows."""
    queues = {*app.registry.queues(), WORKFLOWS_QUEUE, NODES_QUEUE}
    return queues, {*(task.name for task in app.registry), RUN_TASK, NODE_TASK, START_TASK}


@asynccontextmanager
async def within(limit: timedelta, going: Callable[[], Sequence[JobView]]) -> AsyncIterator[None]:
    """End the block after so much real time with a ResultTimeoutError that names the jobs that still go on."""
    try:
        async with asyncio.timeout(limit.total_seconds()) as timer:
            yield
    except TimeoutError:
        if not timer.expired():
            raise
        names = [f"{job.task} ({job.state})" for job in going()]
        told = ", ".join(names[:5]) + (f", and {len(names) - 5} more" if len(names) > 5 else "")
        raise ResultTimeoutError(
            f"after {format_duration(limit)} there is still work: {told or 'nothing that shows'}. A limit may hold it "
            "back, or a handler may not end; timeout= has it wait longer"
        ) from None
