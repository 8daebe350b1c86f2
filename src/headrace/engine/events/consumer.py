"""Consumers: members of a group that handle messages: one at a time per key, or all at once where order is no matter.

Guaranteed: a message's offset is committed only after its handler returned, and after those of all messages before it
in its partition; messages of one key are handled in order, one at a time, unless the consumer is told that order is
no matter. Before a partition goes to another member,
what runs of it may end, and what has ended is committed. Not guaranteed: that a message is handled once. What was not
committed comes again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from headrace.engine.events.batch_lanes import BatchLane, LaneGathering, Together
from headrace.engine.events.lane import Handle, Lane
from headrace.engine.outage import Outage
from headrace.model.errors import BusUnavailableError, HeadraceError
from headrace.model.gathering import Gather
from headrace.model.message_log import Partition
from headrace.model.offsets import Progress
from headrace.ports.bus import Bus, Delivery, Subscription, SubscriptionOptions

LOG = logging.getLogger("headrace.events")

#: Offsets are committed this often, seconds.
COMMIT_SECONDS = 0.5
#: So soon is looked again while a partition is not read, seconds.
PAUSED_SECONDS = 0.05
#: A partition with so many messages per slot that are not done, or four calls of several, is not read further ...
WINDOW = 20
#: ... nor one with so many behind the first that is not done.
MOST_SPAN = 10_000
#: The first pause after the bus was away, and the longest, seconds.
PAUSES = (0.2, 5.0)

__all__ = ["Consumer", "ConsumerOptions", "Handle"]


@dataclass(frozen=True, slots=True)
class ConsumerOptions:
    """What a consumer reads, and how much of it at once."""

    group: str
    topics: tuple[str, ...]
    #: Handlers that run at once.
    concurrency: int = 10
    #: Whether the messages of a key wait for each other.
    ordered: bool = True
    #: How long handlers may go on when their partition goes to another member.
    revoke_seconds: float = 10.0
    #: How many messages are handled at once, and how long they wait for each other; None: each is handled alone.
    gather: Gather | None = None

    @property
    def at_once(self) -> int:
        """How many messages are received at once at most."""
        return max(10 * self.concurrency, 2 * self._most)

    @property
    def window(self) -> int:
        """A partition with so many messages that are not done is not read further."""
        return max(WINDOW * self.concurrency, 4 * self._most)

    @property
    def _most(self) -> int:
        return 0 if self.gather is None else self.gather.batch_size


class Consumer:
    """Reads as one member of a group until it is stopped. Starting twice and stopping twice are allowed."""

    def __init__(
        self, bus: Bus, options: ConsumerOptions, handle: Handle, *, together: Together | None = None
    ) -> None:  # fmt: skip
        """`handle` tries again itself what is to be tried again; should it raise, it is called again, ever later.

        `together`, with `options.gather`: handles several, and returns those that `handle` is to be called for.
        """
        self._bus, self._options, self._handle = bus, options, handle
        self._lanes: dict[tuple[Partition, str], Lane] = {}
        #: Tasks of lanes that were closed and have not ended: one of their key waits for them.
        self._ending: dict[tuple[Partition, str], asyncio.Task[None]] = {}
        self._progress: dict[Partition, Progress] = {}
        self._paused: set[Partition] = set()
        self._slots = asyncio.Semaphore(options.concurrency)
        self._gathering: LaneGathering | None = None
        if options.gather is not None and together is not None:
            self._gathering = LaneGathering(options.gather, self._slots, together)
        self._subscription: Subscription | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self._outage = Outage(LOG, f"group {options.group} gets no messages")
        self._committed_at = 0.0

    @property
    def unfinished(self) -> int:
        """Messages that were received and whose handlers have not ended."""
        return sum(len(lane.waiting) for lane in self._lanes.values())

    def start(self) -> None:
        """Join the group and begin."""
        if self._task is None:
            self._stopping = False
            self._task = asyncio.create_task(self._run(), name=f"headrace-consumer-{self._options.group}")

    async def stop(self, grace: timedelta = timedelta(seconds=10)) -> None:
        """Begin nothing more, let handlers end within `grace`, commit what has ended, and leave the group.

        It stays a member meanwhile: what still runs would else begin elsewhere.
        """
        task, self._task = self._task, None
        if task is None:
            return
        self._stopping = True
        await self._finish(self._progress, grace.total_seconds())
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            await self._tell(self._commit(subscription))
        self._forget(list(self._progress))
        if subscription is not None:
            await self._tell(subscription.close())

    async def _tell(self, last: Awaitable[None]) -> None:
        """Say a last word to the bus, if it hears it."""
        try:
            await last
        except HeadraceError as error:
            LOG.warning("group %s was left without a word, messages may come again: %s", self._options.group, error)

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
        timeout = PAUSED_SECONDS if self._paused else COMMIT_SECONDS
        for delivery in await subscription.receive(limit=self._options.at_once, timeout=timeout):
            if not self._stopping:
                self._put(delivery)
        self._slow_down(subscription)
        now = asyncio.get_running_loop().time()
        if now - self._committed_at >= COMMIT_SECONDS:
            await self._commit(subscription)
            self._committed_at = now

    def _put(self, delivery: Delivery) -> None:
        place, key = delivery.place, self._lane_key(delivery)
        progress = self._progress.setdefault(place, Progress())
        progress.begin(delivery.offset)
        lane = self._lanes.get((place, key))
        if lane is None:
            lane = self._lanes[place, key] = self._new_lane(place, key, progress)
        lane.put(delivery)
        if lane.task is None:
            lane.task = asyncio.create_task(self._work(lane), name=f"headrace-lane-{key}")

    def _new_lane(self, place: Partition, key: str, progress: Progress) -> Lane:
        gathering = self._gathering
        return Lane(place, key, progress) if gathering is None else BatchLane(place, key, progress, gathering=gathering)

    def _lane_key(self, delivery: Delivery) -> str:
        """Return what waits in one line: a key, or a message by itself, which is known again when it comes again."""
        return delivery.message.key if self._options.ordered else f"offset {delivery.offset}"

    async def _work(self, lane: Lane) -> None:
        name = (lane.place, lane.key)
        await lane.work(self._handle, self._slots, self._ending.get(name))
        if self._lanes.get(name) is lane:
            del self._lanes[name]

    def _slow_down(self, subscription: Subscription) -> None:
        """Read no further in partitions that are far ahead of their handlers, and in none when it stops."""
        most = self._options.window
        full = {
            place
            for place, progress in self._progress.items()
            if self._stopping or progress.unfinished >= most or progress.span >= MOST_SPAN
        }
        free = {place for place in self._paused - full if self._progress[place].unfinished <= most // 2}
        if stop := full - self._paused:
            subscription.pause(sorted(stop))
        if free:
            subscription.resume(sorted(free))
        self._paused = (self._paused | full) - free

    async def _commit(self, subscription: Subscription) -> None:
        """Commit what has ended; what could not be is committed with the next."""
        offsets = self._take(self._progress)
        if not offsets:
            return
        try:
            await subscription.commit(offsets)
        except BaseException:
            for place, offset in offsets.items():
                if place in self._progress:
                    self._progress[place].give_back(offset)
            raise

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
        """Let the handlers of partitions that run now end, but no longer; what waits behind them does not begin."""
        gone = set(places)
        lanes = [lane for lane in self._lanes.values() if lane.place in gone]
        for lane in lanes:
            lane.drop_rest()
            if not (self._options.ordered or lane.begun):
                lane.close()
        tasks = [lane.task for lane in lanes if lane.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    def _forget(self, places: Sequence[Partition]) -> None:
        """Drop what is known of partitions that are another member's now."""
        gone = set(places)
        for name, lane in [(name, lane) for name, lane in self._lanes.items() if lane.place in gone]:
            del self._lanes[name]
            lane.close()
            if lane.task is not None:
                self._ending[name] = lane.task
                lane.task.add_done_callback(partial(self._forget_task, name))
        for place in gone:
            self._progress.pop(place, None)
        self._paused -= gone

    def _forget_task(self, name: tuple[Partition, str], task: asyncio.Task[None]) -> None:
        if self._ending.get(name) is task:
            del self._ending[name]
