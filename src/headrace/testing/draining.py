"""Working off what is enqueued, while time passes at once."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from headrace.app import App
from headrace.model.durations import parse_duration
from headrace.model.job import JobView
from headrace.testing.apps import tables_of, within, worked

if TYPE_CHECKING:
    from headrace.engine.worker import Worker
    from headrace.stores.memory.tables import MemoryTables

#: Between two looks at what goes on.
_LOOK_SECONDS = 0.002


async def drain(
    app: App, *, horizon: float | str | timedelta = "1h", timeout: float | str | timedelta = "30s"
) -> list[JobView]:
    """Work an app in memory until nothing is left to do, and return the jobs that ended, in the order of their ends.

    Nobody waits for retries, delays and pauses: as soon as nothing runs, the time of the next job that is due passes
    at once, up to a `horizon` in all. What lies behind that stays, and so do jobs that wait for a signal without a
    timeout, jobs of paused queues, and those whose task or queue this app does not have. Rate limits and open breakers
    take the time they take. Failed jobs are among what is returned: nothing is raised for them. Events and agents go
    on while others work, and are not waited for.

    Raises ResultTimeoutError after `timeout` of real time, naming what still goes on, ConfigError for an app that is
    not in memory.

    >>> import asyncio
    >>> from headrace import App
    >>> from headrace.testing import drain, in_memory
    >>> app = App()
    >>> @app.task
    ... async def remind(name: str) -> str:
    ...     return f"Hello {name}"
    >>> async def work() -> None:
    ...     async with app:
    ...         await remind.options(run_at="10m").enqueue("Ann")
    ...         await remind.options(run_at="2d").enqueue("Ben")
    ...     print([job.result for job in await drain(app)])
    >>> with in_memory(app):
    ...     asyncio.run(work())
    ['Hello Ann']
    """
    tables = tables_of(app)
    left, place = parse_duration(horizon, field="horizon"), tables.ended
    limit, queues = parse_duration(timeout, field="timeout"), worked(app)[0]
    async with app.worker(grace="1s") as worker, within(limit, lambda: tables.goes_on(queues)):
        await _until_rest(app, worker, tables)
        while (step := tables.time_left(*worked(app))) is not None and step <= left:
            left -= step
            await tables.pass_time(step)
            await _until_rest(app, worker, tables)
    return tables.ended_since(place)


async def _until_rest(app: App, worker: Worker, tables: MemoryTables) -> None:
    """Return once nothing runs or may be claimed, everything is recorded, and no batch is about to close."""
    queues, _ = worked(app)
    while tables.goes_on(queues) or tables.closes or not worker.quiet:  # noqa: ASYNC110 - tables have no event
        await asyncio.sleep(_LOOK_SECONDS)
