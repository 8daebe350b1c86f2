"""Consumers: members of a group that handle messages, one at a time per key and several at once over all keys.

Guaranteed: a message's offset is committed only after its handler returned, and after those of all messages before it
in its partition; messages of one key are handled in order, one at a time. Before a partition goes to another member,
what runs of it may end, and what has ended is committed. Not guaranteed: that a message is handled once. What was not
committed comes again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from headrace.engine.outage import Outage
from headrace.model.errors import BusUnavailableError, HeadraceError
from headrace.model.message_log import Partition
from headrace.model.offsets import Progress
from headrace.ports.bus import Bus, Delivery, Subscription, SubscriptionOptions

LOG = logging.getLogger("headrace.events")

#: Offsets are committed this often, seconds.
COMMIT_SECONDS = 0.5
#: A partition with so many unfinished messages per running handler is not read further.
WINDOW = 20
#: The first pause after the bus was away, and the longest, seconds.
PAUSES = (0.2, 5.0)

Handle = Callable[[Delivery], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ConsumerOptions:
    """What a consumer reads, and how much of it at once."""

    group: str
    topics: tuple[str, ...]
    #: Handlers that run at once.
    concurrency: int = 10
    #: How long handlers may go on when their partition goes to another member.
    revoke_seconds: float = 10.0


class Consumer:
    """Reads as one member of a group until it is stopped. Starting twice and stopping twice are allowed."""

    def __init__(self, bus: Bus, options: ConsumerOptions, handle: Handle) -> None:
        """`handle` raises nothing but when it is cancelled: whatever is to be tried again it tries itself."""
        self._bus, self._options, self._handle = bus, options, handle
        self._lanes: dict[tuple[Partition, str], deque[Delivery]] = {}
        self._running: dict[tuple[Partition, str], asyncio.Task[None]] = {}
        self._progress: dict[Partition, Progress] = {}
        self._paused: set[Partition] = set()
        self._slots = asyncio.Semaphore(options.concurrency)
        self._subscription: Subscription | None = None
        self._task: asyncio.Task[None] | None = None
        self._outage = Outage(LOG, f"group {options.group} gets no messages")
        self._committed_at = 0.0

    @property
    def unfinished(self) -> int:
        """Messages that were received and whose handlers have not ended."""
        return sum(len(lane) for lane in self._lanes.values())

    def start(self) -> None:
        """Join the group and begin."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"headrace-consumer-{self._options.group}")

    async def stop(self, grace: timedelta = timedelta(seconds=10)) -> None:
        """Receive no more, let handlers end within `grace`, commit what has ended, and leave the group."""
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await self._finish(self._progress, grace.total_seconds())
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            try:
                await self._commit(subscription)
                await subscription.close()
            except HeadraceError as error:
                LOG.warning("group %s was left without a word, its messages come again: %s", self._options.group, error)
        self._forget(list(self._progress))

    async def _run(self) -> None:
        pause = PAUSES[0]
        while True:
            try:
                if self._subscription is None:
                    self._subscription = await self._bus.subscribe(self._wanted())
                await self._turn(self._subscription)
                pause = PAUSES[0]
            except BusUnavailableError as error:
                self._outage.note(error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, PAUSES[1])
            except Exception:
                LOG.exception("group %s failed, trying again", self._options.group)
                await asyncio.sleep(PAUSES[1])

    def _wanted(self) -> SubscriptionOptions:
        options = self._options
        return SubscriptionOptions(
            options.group, options.topics, self._on_revoked, self._forget, options.revoke_seconds
        )  # fmt: skip

    async def _turn(self, subscription: Subscription) -> None:
        """Receive once, begin what came, and commit now and then."""
        for delivery in await subscription.receive(limit=10 * self._options.concurrency, timeout=COMMIT_SECONDS):
            self._put(delivery)
        self._slow_down(subscription)
        now = asyncio.get_running_loop().time()
        if now - self._committed_at >= COMMIT_SECONDS:
            await self._commit(subscription)
            self._committed_at = now

    def _put(self, delivery: Delivery) -> None:
        place = delivery.place
        self._progress.setdefault(place, Progress()).begin(delivery.offset)
        name = (place, delivery.message.key)
        lane = self._lanes.setdefault(name, deque())
        lane.append(delivery)
        if name not in self._running:
            self._running[name] = asyncio.create_task(self._work(name), name=f"headrace-lane-{delivery.message.key}")

    async def _work(self, name: tuple[Partition, str]) -> None:
        """Handle what is in a lane, in order, until it is empty."""
        lane = self._lanes[name]
        try:
            while lane:
                async with self._slots:
                    await self._handle(lane[0])
                # A partition that was taken away is not there any more.
                progress = self._progress.get(name[0])
                if progress is None or not lane:
                    return
                progress.end(lane.popleft().offset)
        except Exception:
            # Never skipped: what it stands before waits until the partition is read anew.
            LOG.exception("the handler of group %s failed on key %r", self._options.group, name[1])
        finally:
            if self._lanes.get(name) is lane and not lane:
                del self._lanes[name]
            self._running.pop(name, None)

    def _slow_down(self, subscription: Subscription) -> None:
        """Read no further in partitions that are far ahead of their handlers."""
        most = WINDOW * self._options.concurrency
        full = {place for place, progress in self._progress.items() if progress.unfinished >= most}
        free = {place for place in self._paused if place in self._progress and self._unfinished(place) < most // 2}
        if stop := full - self._paused:
            subscription.pause(sorted(stop))
        if free:
            subscription.resume(sorted(free))
        self._paused = (self._paused | full) - free

    def _unfinished(self, place: Partition) -> int:
        return self._progress[place].unfinished

    async def _commit(self, subscription: Subscription) -> None:
        offsets = self._take(self._progress)
        if offsets:
            await subscription.commit(offsets)

    def _take(self, places: Iterable[Partition]) -> dict[Partition, int]:
        taken = {place: self._progress[place].take() for place in places if place in self._progress}
        return {place: offset for place, offset in taken.items() if offset is not None}

    async def _on_revoked(self, places: Sequence[Partition]) -> dict[Partition, int]:
        """Let what runs of partitions end, and give up the rest of them."""
        await self._finish(places, self._options.revoke_seconds * 0.8)
        offsets = self._take(places)
        self._forget(places)
        return offsets

    async def _finish(self, places: Iterable[Partition], seconds: float) -> None:
        """Let the handlers of partitions that run now end; what waits behind them does not begin."""
        gone = set(places)
        running = {name: task for name, task in self._running.items() if name[0] in gone}
        for name in running:
            lane = self._lanes[name]
            while len(lane) > 1:
                lane.pop()
        if running:
            _, late = await asyncio.wait(running.values(), timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _forget(self, places: Sequence[Partition]) -> None:
        """Drop what is known of partitions that are another member's now."""
        gone = set(places)
        for name in [name for name in self._running if name[0] in gone]:
            self._running.pop(name).cancel()
        for name in [name for name in self._lanes if name[0] in gone]:
            self._lanes.pop(name)
        for place in gone:
            self._progress.pop(place, None)
        self._paused -= gone
