"""pgqueuer: PostgreSQL, asyncpg. Batches of 100, no cap on concurrent tasks (its default), one connection a worker."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import Any

from headrace.bench.contenders.base import Contender
from headrace.bench.contenders.postgres import Counter
from headrace.bench.notes import note, note_delay
from headrace.bench.order import Order

BATCH = 100


class PgQueuer(Contender):
    """Its `Queries.enqueue`, and `pgq run`."""

    def __init__(self, order: Order) -> None:
        super().__init__(order)
        self._counter = Counter(order.dsn, "count_pgqueuer")

    async def set_up(self) -> None:
        """Install its schema."""
        await self.open()
        await self._queries.install()
        await self._connection.close()

    async def open(self) -> None:
        """Connect."""
        import asyncpg
        from pgqueuer.db import AsyncpgDriver
        from pgqueuer.queries import Queries

        self._connection = await asyncpg.connect(self.order.dsn)
        self._queries = Queries(AsyncpgDriver(self._connection))

    async def close(self) -> None:
        """Disconnect."""
        await self._connection.close()
        await self._counter.close()

    async def enqueue(self, task: str, value: Any) -> None:
        """Enqueue one job."""
        await self._queries.enqueue(task, str(value).encode())

    async def enqueue_many(self, task: str, values: Sequence[Any]) -> None:
        """Enqueue by lists: one insert of arrays."""
        payloads: list[bytes | None] = [str(value).encode() for value in values]
        await self._queries.enqueue([task] * len(payloads), payloads, [0] * len(payloads))

    async def done(self) -> int:
        """Count the successes of its log."""
        return await self._counter.count()

    def worker_command(self) -> list[str]:
        """Return its worker."""
        return [sys.executable, "-m", __name__]


async def make_worker() -> Any:
    """Return its worker with the tasks of the benchmark."""
    import asyncpg
    from pgqueuer import PgQueuer as Worker
    from pgqueuer.db import AsyncpgDriver

    worker = Worker(AsyncpgDriver(await asyncpg.connect(os.environ["BENCH_DSN"])))

    @worker.entrypoint("noop")
    async def noop(job: Any) -> None:
        """Do nothing."""

    @worker.entrypoint("stamp")
    async def stamp(job: Any) -> None:
        note_delay(float(job.payload))

    @worker.entrypoint("nap")
    async def nap(job: Any) -> None:
        await asyncio.sleep(0.01)
        note(job.payload.decode())

    @worker.entrypoint("doze")
    async def doze(job: Any) -> None:
        await asyncio.sleep(1)

    return worker


async def work() -> None:
    """Run its worker until a signal."""
    await (await make_worker()).run(batch_size=BATCH)


if __name__ == "__main__":
    import uvloop  # it depends on it, and its own command line uses it

    uvloop.run(work())
