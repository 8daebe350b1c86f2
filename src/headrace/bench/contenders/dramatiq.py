"""dramatiq on Redis: 2 processes of 8 threads (its default on two cores); done when its broker dropped the message."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import GroupCallbacks
from dramatiq.rate_limits.backends import RedisBackend

from headrace.bench.contenders.base import Contender
from headrace.bench.contenders.redis import RedisCounter
from headrace.bench.notes import note, note_delay
from headrace.bench.order import Order

broker = RedisBroker(url=os.environ.get("BENCH_REDIS", "redis://127.0.0.1"))
broker.add_middleware(GroupCallbacks(RedisBackend(url=os.environ.get("BENCH_REDIS", "redis://127.0.0.1"))))
dramatiq.set_broker(broker)


class Dramatiq(Contender):
    """Its `send` and its worker."""

    def __init__(self, order: Order) -> None:
        super().__init__(order)
        self._counter = RedisCounter(order.redis)
        self._sent = 0

    async def set_up(self) -> None:
        """Begin with an empty database."""
        await self._counter.empty()

    async def open(self) -> None:
        """Nothing to open: the broker connects by itself."""

    async def close(self) -> None:
        """Disconnect."""
        broker.close()
        await self._counter.close()

    async def enqueue(self, task: str, value: Any) -> None:
        """Send one message; the call blocks, as it has no other."""
        ACTORS[task].send(value)
        self._sent += 1

    async def done(self) -> int:
        """Count the messages that are no longer in its broker."""
        return self._sent - await self._counter.fields("dramatiq:default.msgs")

    def worker_command(self) -> list[str]:
        """Return its own worker command."""
        return [sys.executable, "-m", "dramatiq", __name__, "--processes", "2", "--threads", "8"]


@dramatiq.actor
def noop(number: int) -> None:
    """Do nothing."""


@dramatiq.actor
def stamp(sent: float) -> None:
    """Note the time since `sent`."""
    note_delay(sent)


@dramatiq.actor
def doze(number: int) -> None:
    """Take a second."""
    time.sleep(1)  # noqa: TID251 - a handler that takes a second


@dramatiq.actor
def closed() -> None:
    """Note when the callback starts."""
    note("closed")


@dramatiq.actor
def scatter(count: int) -> None:
    """Run so many messages as a group with a callback."""
    group = dramatiq.group([noop.message(number) for number in range(count)])
    group.add_completion_callback(closed.message())
    group.run()


ACTORS: dict[str, Any] = {"noop": noop, "stamp": stamp, "doze": doze, "scatter": scatter}
