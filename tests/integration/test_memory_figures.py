"""Figures of memory on PostgreSQL: those of all processes, by what the store keeps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from headrace import App, Backoff
from headrace.apps.memory.alerts import FEED, RAISED, tell_alerts
from headrace.apps.memory.figures import KindFigures, memory_figures
from headrace.apps.memory.opening import PROCESS
from headrace.settings import load_settings
from tests.backends.postgres import empty_schema, stores_on
from tests.backends.server import shared_server


@asynccontextmanager
async def apps() -> AsyncIterator[Callable[[], App]]:
    """What makes apps of memory, as processes of their own would, on one schema."""
    async with empty_schema() as schema, stores_on(schema, None):
        environ = {
            "HEADRACE_URL": shared_server().dsn,
            "HEADRACE_QUEUE_SCHEMA": schema,
            "HEADRACE_MEMORY_ALERT_ERROR_RATE": "0.3",
            "HEADRACE_QUEUES": '{"memory_process": {"concurrency": 6}}',
        }
        yield lambda: app_with(load_settings(environ=environ))


def app_with(settings: Any) -> App:
    """An app with work of the kind process."""
    app = App(settings=settings)

    @app.task(name="work", queue=PROCESS, retry=Backoff.fixed(max_attempts=2, delay="10ms"))
    async def work(fails: bool) -> str:
        if fails:
            raise ValueError("wrong")
        return "right"

    return app


async def test_figures_are_those_of_all_processes() -> None:
    """Two workers' jobs and slots are seen by a third process that works nothing, and so are the alerts it tells."""
    async with apps() as make, make().worker(concurrency=4, grace=0), make().worker(concurrency=3, grace=0):
        app = make()
        async with app:
            batch = await app.submit(app.find_task("work"), [False] * 6 + [True] * 2)
            await batch.wait()
            found = await memory_figures(app)
            process = next(one for one in found.kinds if one.kind == "process")
            assert (process.jobs, process.pool_size, process.queue_depth) == (8, 7, 0)
            assert process.error_rate == 0.4  # four of ten attempts
            assert process.p99_latency_ms is not None
            assert process.throughput_per_min > 0
            assert next(one for one in found.kinds if one.kind == "storage") == KindFigures("storage")
            assert [alert.figure for alert in await tell_alerts(app, found)] == ["error_rate"]
            [entry] = await app.feed(FEED).read()
            assert (entry.type, entry.data["kind"], entry.data["value"]) == (RAISED, "process", 0.4)
