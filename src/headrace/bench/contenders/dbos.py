"""DBOS: PostgreSQL, SQLAlchemy. One queue without limits, polled every 0.1 s (its default is 1 s), async workflows."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from dbos import DBOS, DBOSClient

from headrace.bench.contenders.base import Contender
from headrace.bench.contenders.postgres import Counter
from headrace.bench.notes import note, note_delay
from headrace.bench.order import Order

QUEUE = "bench"
POLL_SECONDS = 0.1


class Dbos(Contender):
    """Its client outside the application, and an application that works a queue."""

    def __init__(self, order: Order) -> None:
        super().__init__(order)
        self._counter = Counter(order.dsn, "count_dbos")

    async def set_up(self) -> None:
        """Let an application make the schema, as its client does not."""
        await asyncio.to_thread(_launch, self.order.dsn)
        await asyncio.to_thread(DBOS.destroy)

    async def open(self) -> None:
        """Connect its client."""
        self._client = await asyncio.to_thread(lambda: DBOSClient(system_database_url=self.order.dsn))

    async def close(self) -> None:
        """Disconnect."""
        await asyncio.to_thread(self._client.destroy)
        await self._counter.close()

    async def enqueue(self, task: str, value: Any) -> None:
        """Enqueue one workflow."""
        await self._client.enqueue_async({"queue_name": QUEUE, "workflow_name": task}, value)

    async def enqueue_many(self, task: str, values: Sequence[Any]) -> None:
        """Enqueue many workflows in one transaction: it has no call for many."""
        await asyncio.to_thread(self._enqueue_together, task, values)

    def _enqueue_together(self, task: str, values: Sequence[Any]) -> None:
        import sqlalchemy

        engine = sqlalchemy.create_engine(self.order.dsn.replace("postgresql://", "postgresql+psycopg://", 1))
        with engine.begin() as connection:
            for value in values:
                options: Any = {"queue_name": QUEUE, "workflow_name": task}
                self._client.enqueue_in_transaction(connection, options, value)
        engine.dispose()

    async def done(self) -> int:
        """Count the workflows that succeeded."""
        return await self._counter.count()

    def worker_command(self) -> list[str]:
        """Return its application."""
        return [sys.executable, "-m", __name__]


@DBOS.workflow(name="noop")
async def noop(number: int) -> None:
    """Do nothing."""


@DBOS.workflow(name="stamp")
async def stamp(sent: float) -> None:
    """Note the time since `sent`."""
    note_delay(sent)


@DBOS.workflow(name="nap")
async def nap(name: int) -> None:
    """Take 10 ms."""
    await asyncio.sleep(0.01)
    note(str(name))


@DBOS.workflow(name="doze")
async def doze(number: int) -> None:
    """Take a second."""
    await asyncio.sleep(1)


@DBOS.workflow(name="scatter")
async def scatter(count: int) -> None:
    """Enqueue so many workflows and wait for all."""
    handles = [await DBOS.enqueue_workflow_async(QUEUE, noop, number) for number in range(count)]
    for handle in handles:
        await handle.get_result()
    note("closed")


def _launch(dsn: str) -> None:
    config: Any = {"name": "bench", "system_database_url": dsn, "log_level": "WARNING", "run_admin_server": False}
    DBOS(config=config)
    DBOS.launch()
    DBOS.register_queue(QUEUE, polling_interval_sec=POLL_SECONDS)


if __name__ == "__main__":
    _launch(os.environ["BENCH_DSN"])
    signal.sigwait([signal.SIGTERM, signal.SIGINT])
    DBOS.destroy()
