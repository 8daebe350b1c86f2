"""Celery on Redis: prefork, 2 processes, results kept, acknowledged before the run (its default: crashes lose jobs)."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from celery import Celery as System
from celery import chord

from headrace.bench.contenders.base import Contender
from headrace.bench.contenders.redis import RedisCounter
from headrace.bench.notes import note, note_delay
from headrace.bench.order import Order

app = System("bench")
app.conf.update(worker_prefetch_multiplier=64, broker_connection_retry_on_startup=True)


def _connect(url: str) -> None:
    app.conf.update(broker_url=url, result_backend=url)


if "BENCH_REDIS" in os.environ:
    _connect(os.environ["BENCH_REDIS"])


class Celery(Contender):
    """Its `delay` and its worker."""

    def __init__(self, order: Order) -> None:
        super().__init__(order)
        self._counter = RedisCounter(order.redis)

    async def set_up(self) -> None:
        """Begin with an empty database."""
        await self._counter.empty()

    async def open(self) -> None:
        """Name the broker."""
        _connect(self.order.redis)

    async def close(self) -> None:
        """Disconnect."""
        app.close()
        await self._counter.close()

    async def enqueue(self, task: str, value: Any) -> None:
        """Send one task; the call blocks, as it has no other."""
        app.tasks[f"bench.{task}"].delay(value)

    async def done(self) -> int:
        """Count the results it has stored."""
        return await self._counter.keys("celery-task-meta-")

    def worker_command(self) -> list[str]:
        """Return its own worker command."""
        return [sys.executable, "-m", "celery", "-A", f"{__name__}:app", "worker", "-c", "2", "--loglevel", "WARNING"]


@app.task(name="bench.noop")
def noop(number: int) -> None:
    """Do nothing."""


@app.task(name="bench.stamp")
def stamp(sent: float) -> None:
    """Note the time since `sent`."""
    note_delay(sent)


@app.task(name="bench.doze")
def doze(number: int) -> None:
    """Take a second."""
    time.sleep(1)  # noqa: TID251 - a handler that takes a second


@app.task(name="bench.closed")
def closed() -> None:
    """Note when the callback starts."""
    note("closed")


@app.task(name="bench.scatter")
def scatter(count: int) -> None:
    """Run so many tasks as a chord."""
    chord(noop.s(number) for number in range(count))(closed.si())
