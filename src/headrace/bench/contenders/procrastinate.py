"""procrastinate: PostgreSQL, psycopg 3. Concurrency 10, a pool of 10 connections, LISTEN/NOTIFY (its default)."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any

from headrace.bench.contenders.base import Contender
from headrace.bench.contenders.postgres import Counter
from headrace.bench.notes import note, note_delay
from headrace.bench.order import Order

CONCURRENCY = 10


class Procrastinate(Contender):
    """Its `defer_async` and `batch_defer_async`, and its worker."""

    def __init__(self, order: Order) -> None:
        super().__init__(order)
        self._counter = Counter(order.dsn, "count_procrastinate")

    async def set_up(self) -> None:
        """Apply its schema."""
        async with make_app(self.order.dsn).open_async() as app:
            await app.schema_manager.apply_schema_async()

    async def open(self) -> None:
        """Open the app."""
        self._app = make_app(self.order.dsn)
        await self._app.open_async()

    async def close(self) -> None:
        """Close the app."""
        await self._app.close_async()
        await self._counter.close()

    async def enqueue(self, task: str, value: Any) -> None:
        """Defer one job."""
        await self._app.tasks[task].defer_async(value=value)

    async def enqueue_many(self, task: str, values: Sequence[Any]) -> None:
        """Defer a batch: one statement."""
        await self._app.tasks[task].batch_defer_async(*({"value": value} for value in values))

    async def done(self) -> int:
        """Count the jobs that succeeded."""
        return await self._counter.count()

    def worker_command(self) -> list[str]:
        """Return its worker."""
        return [sys.executable, "-m", __name__]


def make_app(dsn: str) -> Any:
    """Return the app with the tasks of the benchmark."""
    from procrastinate import App, PsycopgConnector

    app = App(connector=PsycopgConnector(conninfo=dsn, max_size=CONCURRENCY))

    @app.task(name="noop")
    async def noop(value: int) -> None:
        """Do nothing."""

    @app.task(name="stamp")
    async def stamp(value: float) -> None:
        note_delay(value)

    @app.task(name="nap")
    async def nap(value: int) -> None:
        await asyncio.sleep(0.01)
        note(str(value))

    @app.task(name="doze")
    async def doze(value: int) -> None:
        await asyncio.sleep(1)

    return app


async def work() -> None:
    """Run its worker until a signal."""
    async with make_app(os.environ["BENCH_DSN"]).open_async() as app:
        await app.run_worker_async(concurrency=CONCURRENCY)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(work())
