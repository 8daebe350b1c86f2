"""A member of a group on the store's bus: which partitions it reads, from where on, and how it gives them up."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import uuid4

from headrace.model.errors import BusUnavailableError, StoreUnavailableError
from headrace.model.message_log import Membership, Partition, Share, Stored
from headrace.ports.bus import Delivery, SubscriptionOptions
from headrace.ports.message_log import MessageLog
from headrace.ports.notifier import Notifier

#: The topic of hints that there are new messages, or partitions to be had.
LOG = "log"
#: Hints that bring nothing lead to a new join this part of the lease after the last one: others are hinted as well.
STALE_PART = 0.1


@dataclass(slots=True)
class Reading:
    """A partition that is read: `next` is the next offset."""

    share: Share
    next: int


@contextmanager
def as_bus_errors() -> Iterator[None]:
    """Tell of a store that cannot answer as of a bus that cannot."""
    try:
        yield
    except StoreUnavailableError as error:
        raise BusUnavailableError(str(error)) from error


class StoreSubscription:
    """`ports.bus.Subscription`. It joins again every third of its lease, and soon after hints that brought nothing.

    What others are to have is delivered no more and ends in a task beside; the rest is received on meanwhile.
    """

    def __init__(self, log: MessageLog, options: SubscriptionOptions, *, lease: timedelta, poll: timedelta) -> None:
        """`lease`: silence after which it is no member any more; `poll`: the longest wait for a hint."""
        self._log, self._options = log, options
        self._lease, self._poll = lease, poll.total_seconds()
        self._member = uuid4()
        #: What it reads; that which was read last comes last.
        self._reading: dict[Partition, Reading] = {}
        self._paused: set[Partition] = set()
        #: Partitions that are given up, and the task that does so.
        self._ending: set[Partition] = set()
        self._leaving: asyncio.Task[None] | None = None
        #: Of what is asked and told of shares one thing at a time: no old answer brings back what was given up.
        self._talk = asyncio.Lock()
        self._hinted = asyncio.Event()
        #: A hint brought nothing since the last join.
        self._stale = False
        self._look_at = self._joined_at = -math.inf
        self._stop_hints: Callable[[], None] | None = None

    async def open(self, notifier: Notifier) -> None:
        """Join, and listen for hints. Who is cancelled meanwhile leaves: nobody waits for the end of its lease."""
        try:
            await self._join()
            self._stop_hints = await notifier.subscribe(self._on_hint)
        except asyncio.CancelledError:
            with contextlib.suppress(StoreUnavailableError, TimeoutError):
                async with asyncio.timeout(self._lease.total_seconds()):
                    await self._log.give_up(self._options.group, self._member)
            raise

    def abandon(self) -> None:
        """Do nothing more by itself."""
        self._stop_listening()
        if self._leaving is not None:
            self._leaving.cancel()

    def _stop_listening(self) -> None:
        stop, self._stop_hints = self._stop_hints, None
        if stop is not None:
            stop()

    def _on_hint(self, topic: str) -> None:
        if topic == LOG:
            self._hinted.set()

    async def receive(self, *, limit: int, timeout: float) -> list[Delivery]:
        """Return what has come, at most `limit`, or nothing after `timeout` seconds."""
        until, third = _now() + timeout, self._lease.total_seconds() / 3
        with as_bus_errors():
            while True:
                self._check_leaving()
                if _now() - self._joined_at >= third:
                    await self._join()
                found = await self._look(limit)
                if found or _now() >= until:
                    return found
                await self._wait(min(until, self._look_at, self._joined_at + third) - _now())

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(max(seconds, 0)):
                await self._hinted.wait()
        except TimeoutError:
            return

    async def _look(self, limit: int) -> list[Delivery]:
        """Read, unless all was read a moment ago and no hint came since."""
        hinted = self._hinted.is_set()
        self._hinted.clear()
        if not hinted and _now() < self._look_at:
            return []
        # Before the read: what is to be looked at sooner says so meanwhile.
        self._look_at = _now() + self._poll
        found = await self._read(limit)
        # A hint that brought nothing may be of a new topic, or of somebody who left.
        self._stale = not found and (hinted or self._stale)
        join_at = self._joined_at + self._lease.total_seconds() * STALE_PART
        if self._stale and _now() >= join_at:
            self._stale = False
            await self._join()
            found = await self._read(limit)
        if self._stale:
            self._look_at = min(self._look_at, join_at)
        return found

    async def _read(self, limit: int) -> list[Delivery]:
        """Read on, first where was not read for the longest time."""
        asked = {place: one for place, one in self._reading.items() if place not in self._paused | self._ending}
        if not asked:
            return []
        starts = {place: reading.next for place, reading in asked.items()}
        stored = await self._log.read_messages(starts, limit=limit)
        if _may_be_more(stored, limit):
            self._look_at = -math.inf
        found = [Delivery(one.message, one.partition, one.offset) for one in stored]
        # What was lost meanwhile is another's, or begins anew.
        found = [delivery for delivery in found if self._reading.get(delivery.place) is asked[delivery.place]]
        for place, end in {delivery.place: delivery.offset + 1 for delivery in found}.items():
            self._reading[place] = self._reading.pop(place)
            self._reading[place].next = end
        return found

    async def _join(self) -> None:
        """Renew the membership, begin with new partitions and give up those that others are to have.

        What is asked for while others are given up still is asked for again by the next join.
        """
        membership = await self._renew()
        surplus = [place for place in membership.surplus if place in self._reading]
        if surplus and self._leaving is None:
            self._ending.update(surplus)
            self._leaving = asyncio.create_task(self._give_up(surplus), name=f"headrace-leaving-{self._options.group}")

    def _check_leaving(self) -> None:
        """Raise what kept partitions from being given up."""
        leaving = self._leaving
        if leaving is not None and leaving.done():
            self._leaving = None
            leaving.result()

    async def _renew(self) -> Membership:
        async with self._talk:
            return await self._ask()

    async def _ask(self) -> Membership:
        options, asked_at = self._options, _now()
        membership = await self._log.join_group(options.group, self._member, options.topics, lease=self._lease)
        self._joined_at = asked_at
        shares = {(share.topic, share.partition): share for share in membership.shares}
        self._lose([
            place for place, reading in self._reading.items()
            if place not in shares or shares[place].generation != reading.share.generation
        ])  # fmt: skip
        for place, share in shares.items():
            if place not in self._reading:
                self._reading[place] = Reading(share, share.offset)
                self._look_at = -math.inf
        return membership

    def _lose(self, places: Sequence[Partition]) -> None:
        """Forget partitions that are another's already."""
        if places:
            self._forget(places)
            self._options.on_lost(places)

    def _forget(self, places: Sequence[Partition]) -> None:
        for place in places:
            self._reading.pop(place, None)
        self._paused.difference_update(places)

    async def _give_up(self, places: Sequence[Partition]) -> None:
        """Let what runs of partitions end, note how far that came, and leave them to others.

        If the store is away by then they are read anew from what was committed last: who was asked has forgotten them.
        """
        try:
            offsets = await self._revoked(places)
            async with self._talk:
                done = self._shares_at(offsets)
                self._forget(places)
                await self._note(done)
                await self._log.give_up(self._options.group, self._member, places)
        finally:
            self._ending.difference_update(places)

    async def _revoked(self, places: Sequence[Partition]) -> dict[Partition, int]:
        """Ask for an end, and stay a member while that takes its time."""
        ending = asyncio.ensure_future(self._options.on_revoked(places))
        try:
            while not (await asyncio.wait([ending], timeout=self._lease.total_seconds() / 3))[0]:
                with contextlib.suppress(StoreUnavailableError):
                    await self._renew()
        finally:
            ending.cancel()
        return ending.result()

    async def commit(self, offsets: dict[Partition, int]) -> None:
        """Note the next offsets to be read of partitions that are still its own."""
        with as_bus_errors():
            async with self._talk:
                await self._note(self._shares_at(offsets))

    def _shares_at(self, offsets: dict[Partition, int]) -> list[Share]:
        known = [(place, offset) for place, offset in offsets.items() if place in self._reading]
        return [replace(self._reading[place].share, offset=offset) for place, offset in known]

    async def _note(self, done: Sequence[Share]) -> None:
        if not done:
            return
        places = {(share.topic, share.partition): share for share in done}
        kept = set(await self._log.commit_offsets(self._options.group, self._member, done))
        self._lose([place for place in places if place in self._reading and place not in kept])

    def pause(self, places: Sequence[Partition]) -> None:
        """Receive nothing more of partitions."""
        self._paused.update(place for place in places if place in self._reading)

    def resume(self, places: Sequence[Partition]) -> None:
        """Receive from paused partitions again, where it was left."""
        self._paused.difference_update(places)
        self._look_at = -math.inf

    async def close(self) -> None:
        """Leave the group at once; what runs may end first."""
        self._stop_listening()
        leaving, self._leaving = self._leaving, None
        if leaving is not None:
            await asyncio.gather(leaving, return_exceptions=True)
        with as_bus_errors():
            if self._reading:
                offsets = await self._revoked(list(self._reading))
                done = self._shares_at(offsets)
                self._reading.clear()
                await self._note(done)
            await self._log.give_up(self._options.group, self._member)


def _may_be_more(stored: Sequence[Stored], limit: int) -> bool:
    """Whether a partition gave all that it could of equal parts of the limit, so that more may lie behind."""
    read = Counter((one.message.topic, one.partition) for one in stored)
    return any(count >= limit // len(read) for count in read.values())


def _now() -> float:
    return asyncio.get_running_loop().time()
