"""The intake: who enqueues is refused, or waits, where a queue is full or closed.

Whether a queue is closed is read for all queues together, about once a second, and behind the enqueues while these keep
coming. The backlog of a bounded queue is counted at most every `ASK_SECONDS`, and sooner only when the credit that a
count gave is used up and there was room for more. So an unbounded queue pays a look into a dict, and a bounded one is
overshot by at most (submitting processes - 1) x the larger of the credit and their largest call.

Not guaranteed: the bound itself. It is a brake, not a lock: a lock would make all that enqueue wait for each other.
Nor the second in which a closed queue refuses, where the store takes longer to answer: a call then waits for one read
that began after it came, and goes by that.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack

from headrace.engine.retrying import with_retries
from headrace.model.backlog import Bound, OnFull
from headrace.model.durations import format_duration
from headrace.model.errors import QueueClosedError, QueueFullError, StoreUnavailableError
from headrace.model.job import NewJob
from headrace.model.queue import QueueRule
from headrace.ports.stores import Stores

LOG = logging.getLogger("headrace.intake")

#: Which queues are closed is believed this long: with the time an insert takes, a second.
BELIEVED_SECONDS = 0.9
#: From this age on it is read anew behind the enqueue that notices.
REFRESH_SECONDS = 0.7
#: How often the backlog of a full queue is counted; rarer where counting takes long.
ASK_SECONDS = 0.1
#: Counting takes at most this part of the time.
ASK_LOAD = 0.05
#: The least that is let in on one count, where there is room: small bounds would make each job wait for a count.
LEAST_CREDIT = 64
#: A stream that waits so long for room says so.
PATIENT_SECONDS = 10.0


class Intake:
    """Lets jobs into queues."""

    def __init__(self, stores: Stores, rules: Mapping[str, QueueRule]) -> None:
        """`rules` by queue; they are looked at each time, so that later ones count."""
        self._stores = stores
        self._rules = rules
        self._rooms: dict[str, _Room] = {}
        self._closed: frozenset[str] = frozenset()
        self._read_at = -math.inf
        self._reading: asyncio.Task[None] | None = None

    def lets_in(self, queue: str, count: int = 1) -> bool:
        """Let jobs in if that needs no question to the store; False: ask with `enter`."""
        now = asyncio.get_running_loop().time()
        age = now - self._read_at
        if age >= BELIEVED_SECONDS or queue in self._closed:
            return False
        if age >= REFRESH_SECONDS:
            self._read_behind()
        bound = self._bound(queue)
        return bound is None or self._room(queue, bound).spend(count, now)

    async def enter(self, queue: str, count: int = 1, *, patience: float | None = 0.0) -> None:
        """Let `count` jobs in, or wait for it up to `patience` seconds (None: without end).

        Raises QueueClosedError, QueueFullError, StoreUnavailableError.
        """
        await self.check_open(queue)
        bound = self._bound(queue)
        if bound is None:
            return
        room, waits = self._room(queue, bound), patience != 0
        async with AsyncExitStack() as stack:
            if waits:
                # In turn: a large call would wait for ever beside small ones.
                patience = await room.take_turn(stack, patience)
            await self._enter(queue, room, count, patience=patience, waits=waits)

    async def _enter(self, queue: str, room: _Room, count: int, *, patience: float | None, waits: bool) -> None:
        began = asyncio.get_running_loop().time()
        told = False
        while not await room.enter(count):
            waited = asyncio.get_running_loop().time() - began
            if patience is not None and waited >= patience:
                raise _full(queue, room.bound, waits=waits)
            if waited > PATIENT_SECONDS and not told:
                told = True
                LOG.info("queue %s is full (max_waiting = %d): waiting for room", queue, room.bound.max_waiting)
            left = math.inf if patience is None else patience - waited
            await asyncio.sleep(min(room.next_ask_in() * random.uniform(1.0, 1.2), left))  # noqa: S311 - jitter
            await self.check_open(queue)

    def patience_of(self, queue: str) -> float:
        """Return for how many seconds a call waits for room in a queue."""
        bound = self._bound(queue)
        return bound.wait_timeout.total_seconds() if bound is not None and bound.on_full is OnFull.WAIT else 0.0

    async def enter_all(self, jobs: Sequence[NewJob], *, waits: bool = True) -> None:
        """Let the jobs of one call in, queue by queue; with `waits` as the rule of each queue says."""
        for queue, count in sorted(Counter(job.spec.queue for job in jobs).items()):
            if not self.lets_in(queue, count):
                await self.enter(queue, count, patience=self.patience_of(queue) if waits else 0.0)

    def give_back(self, queue: str, count: int) -> None:
        """Take back jobs that were let in and not inserted."""
        if queue in self._rooms:
            self._rooms[queue].give_back(count)

    def _bound(self, queue: str) -> Bound | None:
        rule = self._rules.get(queue)
        return None if rule is None else rule.bound

    def _room(self, queue: str, bound: Bound) -> _Room:
        room = self._rooms.get(queue)
        if room is None or room.bound != bound:
            room = self._rooms[queue] = _Room(self._stores, queue, bound)
        return room

    async def check_open(self, queue: str) -> None:
        """Raise QueueClosedError for a queue that is closed."""
        loop = asyncio.get_running_loop()
        came_at = loop.time()
        # What was read since the caller came is believed at any age: a store may take longer than that to answer.
        while self._read_at < came_at and loop.time() - self._read_at >= BELIEVED_SECONDS:
            # A cancelled caller must not take the answer from the others.
            await with_retries(lambda _: asyncio.shield(self._read_behind()))
        if queue in self._closed:
            raise QueueClosedError.of(queue)

    async def look_again(self) -> None:
        """Believe no more what was read before: a queue was opened here just now."""
        if self._reading is not None:
            await asyncio.wait([self._reading])
        self._read_at = -math.inf

    def _read_behind(self) -> asyncio.Task[None]:
        """Return the read under way, or begin one."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read(), name="headrace-intake")
            self._reading.add_done_callback(_look_at_error)
        return self._reading

    async def _read(self) -> None:
        sent_at = asyncio.get_running_loop().time()
        states = await self._stores.control.queue_states()
        self._closed = frozenset(name for name, state in states.items() if state.closed)
        self._read_at = sent_at

    async def close(self) -> None:
        """Stop reading."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)


class _Room:
    """What one process knows of the room in one queue."""

    def __init__(self, stores: Stores, queue: str, bound: Bound) -> None:
        self.bound = bound
        self._stores = stores
        self._queue = queue
        self._most_credit = max(LEAST_CREDIT, bound.max_waiting // 16)
        #: What may still be let in on the last count, and the room it found less what was let in since.
        self._credit = self._room = 0
        self._asked_at = -math.inf
        self._interval = ASK_SECONDS
        self._asking = asyncio.Lock()
        self._turn = asyncio.Lock()

    def spend(self, count: int, now: float) -> bool:
        """Take jobs off the credit, unless it is used up or too old, or others wait for their turn."""
        if self._turn.locked() or now - self._asked_at >= self._interval or self._need(count) > self._credit:
            return False
        self._credit -= count
        self._room -= count
        return True

    def _need(self, count: int) -> int:
        # A call larger than the bound goes into an empty queue: it would never fit.
        return min(count, self.bound.max_waiting)

    async def take_turn(self, stack: AsyncExitStack, patience: float | None) -> float | None:
        """Wait for those who came before; return the patience that is left."""
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(patience):
                await stack.enter_async_context(self._turn)
        except TimeoutError:
            raise _full(self._queue, self.bound, waits=True) from None
        return None if patience is None else max(0.0, patience - asyncio.get_running_loop().time() + began)

    async def enter(self, count: int) -> bool:
        """Let jobs in if there is room by the last count, or by a new one where it is time for it."""
        async with self._asking:
            need, now = self._need(count), asyncio.get_running_loop().time()
            fresh = now - self._asked_at < self._interval
            if not fresh or self._credit < need <= self._room:
                await self._ask()
                # A call larger than the credit may have all the room that was just seen.
                self._credit = max(self._credit, min(need, self._room))
            if need > self._credit:
                return False
            self._credit -= count
            self._room -= count
            return True

    async def _ask(self) -> None:
        loop = asyncio.get_running_loop()
        sent_at = loop.time()
        most = self.bound.max_waiting
        waiting = await with_retries(lambda _: self._stores.inspect.waiting_jobs(self._queue, at_most=most))
        self._asked_at = sent_at
        self._interval = max(ASK_SECONDS, (loop.time() - sent_at) / ASK_LOAD)
        self._room = most - waiting
        self._credit = min(self._room, self._most_credit)

    def next_ask_in(self) -> float:
        """Return the seconds until the queue may be counted again."""
        return max(0.0, self._asked_at + self._interval - asyncio.get_running_loop().time())

    def give_back(self, count: int) -> None:
        """Add to credit and room what was not used."""
        self._credit += count
        self._room += count


def _full(queue: str, bound: Bound, *, waits: bool) -> QueueFullError:
    """Return the error of a full queue with what helps who has waited, who might have, and who may not."""
    if bound.on_full is OnFull.REFUSE:
        return QueueFullError.of(queue, bound.max_waiting)
    if waits:
        after = format_duration(bound.wait_timeout)
        fix = f"no room for {after}; send the same again later, raise wait_timeout or max_waiting, or start workers"
    else:
        fix = "send the same again in a second; a transaction is not held open to wait for room"
    return QueueFullError.of(queue, bound.max_waiting, fix=fix)


def _look_at_error(reading: asyncio.Task[None]) -> None:
    """Say that a read failed that nobody may be waiting for; the next enqueue reads again."""
    if not reading.cancelled() and (error := reading.exception()) is not None:
        level = logging.INFO if isinstance(error, StoreUnavailableError) else logging.WARNING
        LOG.log(level, "cannot read which queues are closed: %s", error)
