"""Oban for Python: PostgreSQL, psycopg. A queue of 100 at once, a pool of 10 connections, uvloop where installed."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import orjson
from oban import Oban as System
from oban import worker
from oban.schema import install
from psycopg.types.json import set_json_dumps, set_json_loads

from headrace.bench.contenders.base import Contender
from headrace.bench.contenders.postgres import Counter
from headrace.bench.notes import note, note_delay
from headrace.bench.order import Order

LIMIT = 100


class Oban(Contender):
    """Its `enqueue` and `enqueue_many`, and its embedded mode as a worker."""

    def __init__(self, order: Order) -> None:
        super().__init__(order)
        self._counter = Counter(order.dsn, "count_oban")

    async def set_up(self) -> None:
        """Install its schema."""
        pool = await System.create_pool(self.order.dsn)
        await install(pool)
        await pool.close()

    async def open(self) -> None:
        """Open it without queues: a client."""
        _use_fast_json()
        self._pool = await System.create_pool(self.order.dsn)
        self._oban = System(pool=self._pool)

    async def close(self) -> None:
        """Close its connections."""
        await self._pool.close()
        await self._counter.close()

    async def enqueue(self, task: str, value: Any) -> None:
        """Insert one job."""
        await self._oban.enqueue(WORKERS[task].new({"value": value}))

    async def enqueue_many(self, task: str, values: Sequence[Any]) -> None:
        """Insert many jobs in one call."""
        await self._oban.enqueue_many([WORKERS[task].new({"value": value}) for value in values])

    async def done(self) -> int:
        """Count the jobs that completed."""
        return await self._counter.count()

    def worker_command(self) -> list[str]:
        """Return its embedded mode."""
        return [sys.executable, "-m", __name__]


@worker()
class Noop:
    """Does nothing."""

    async def process(self, job: Any) -> None:
        """Do nothing."""


@worker()
class Stamp:
    """Notes the time since the job was sent."""

    async def process(self, job: Any) -> None:
        """Note it."""
        note_delay(job.args["value"])


@worker()
class Nap:
    """Takes 10 ms."""

    async def process(self, job: Any) -> None:
        """Sleep, then note the name."""
        await asyncio.sleep(0.01)
        note(str(job.args["value"]))


@worker()
class Doze:
    """Takes a second."""

    async def process(self, job: Any) -> None:
        """Sleep."""
        await asyncio.sleep(1)


WORKERS: dict[str, Any] = {"noop": Noop, "stamp": Stamp, "nap": Nap, "doze": Doze}


def _use_fast_json() -> None:
    """Do as its command line does."""
    set_json_dumps(orjson.dumps)
    set_json_loads(orjson.loads)


async def work() -> None:
    """Run its queues until a signal."""
    _use_fast_json()
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    pool = await System.create_pool(os.environ["BENCH_DSN"], max_size=10)
    async with System(pool=pool, queues={"default": LIMIT}):
        await stopping.wait()
    await pool.close()


if __name__ == "__main__":
    if find_spec("uvloop") is None:
        asyncio.run(work())
    else:
        import_module("uvloop").run(work())
