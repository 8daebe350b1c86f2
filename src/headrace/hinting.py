"""What notifiers of servers share: hints are sent after the commit, coalesced per topic, and lost without harm.

Own subscribers hear at once. To other processes a hint leaves at once, except in a flood: hints of one topic that
follow one another faster than anybody could answer them leave every 10 ms after the first few, and those of feeds,
which are many, leave together, every 20 ms at most. Own hints are recognised by their sender when they come back.
Listening has a connection of its own, remade when it breaks; while it is away, and without it, everything works by
polling.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import uuid4

from headrace.model.errors import HeadraceError
from headrace.model.feed import hint_topic
from headrace.subscribers import OnHint, Subscribers, running_loop

LOG = logging.getLogger("headrace.hints")

#: So many hints of a topic, each within this time of the last, are a flood. A caller that waits for the answer to a
#: job before it enqueues the next is not so fast; a job that ends and closes its batch gives two at once.
FLOOD, FLOOD_GAP = 4, 0.002
#: How often the hints of a topic may leave, in a flood and otherwise, on average over the time in `CREDIT`.
FLOOD_SPACING, SPACING, CREDIT = 0.01, 0.0025, 0.08
MANY_TOPICS = 1_000
#: Hints of feeds leave together, so often at most: there are many feeds, and a hint each would be a call each.
FEEDS, FEEDS_SPACING = hint_topic(""), 0.02
#: How often the listening connection is asked whether it still lives, and how long it may take to answer.
CHECK_EVERY, CHECK_TIMEOUT = 10.0, 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
#: How long `subscribe` waits for the first connection before it goes on without.
_FIRST_WAIT = 5.0


@dataclass(frozen=True, slots=True)
class Ride:
    """A hint that the write it announces carries: what it says, and on which channel."""

    channel: str
    payload: str


class ServerNotifier(ABC):
    """The notifier port over a server's channel. It lives on the loop that made it; hints come from any thread.

    An adapter sends payloads in `_publish`, and in `_listen` hears them on a connection of its own until that ends.
    """

    def __init__(self, channel: str, *, tells: bool, listens: bool, rides: bool) -> None:
        """`tells`: hints leave this process; `listens`: those of others are heard; `rides`: writes may carry one."""
        self._channel, self._sender = channel, uuid4().hex[:16]
        self._tells, self._listens, self._rides = tells, listens, tells and rides
        self._loop = asyncio.get_running_loop()
        self._subscribers = Subscribers()
        self._pace = Pace()
        self._unsent: set[str] = set()
        #: Topics that wait for their turn.
        self._late: set[str] = set()
        #: Those of feeds that wait for theirs, and when that is at the earliest.
        self._feeds: set[str] = set()
        self._feeds_at = 0.0
        self._sending: asyncio.Task[None] | None = None
        self._listener: asyncio.Task[None] | None = None
        self._tried = asyncio.Event()
        #: Whether others cannot be heard just now, and whether that was said.
        self._deaf = self._said = False
        self._pause = _FIRST_PAUSE
        self._closed = False

    @abstractmethod
    async def _publish(self, payloads: Sequence[str]) -> None:
        """Send payloads on the channel. May raise HeadraceError: a hint may be lost."""

    @abstractmethod
    async def _listen(self) -> None:
        """Connect, call `_connected()`, then `_heard(payload)` for each, until the connection ends.

        May raise HeadraceError and TimeoutError; it is called again after a pause.
        """

    @property
    def listening(self) -> bool:
        """Whether hints of other processes are heard, as far as that was tried; else this process polls only."""
        return self._listens and not self._deaf

    def hint(self, topic: str) -> None:
        """Tell other processes soon, coalesced per topic. Never raises; call after the commit."""
        if self._closed:
            return
        self._subscribers.tell(topic)
        if running_loop() is self._loop:
            self._hint_others(topic)
        else:
            with contextlib.suppress(RuntimeError):  # our loop was closed: there is nothing left to send with
                self._loop.call_soon_threadsafe(self._hint_others, topic)

    def ride(self, topic: str) -> Ride | None:
        """Return the hint for a write that tells others by itself; None in a flood, or where none can.

        This process is still to be told, by `hint_here`; without a ride all are, by `hint`.
        """
        if topic in self._unsent or topic in self._late or self._closed or not self._rides:
            return None
        if running_loop() is not self._loop or not self._pace.take(topic, self._loop.time()):
            return None
        return Ride(self._channel, self._payload(topic))

    def hint_here(self, topic: str) -> None:
        """Tell the subscribers of this process only."""
        self._subscribers.tell(topic)

    def _payload(self, topic: str) -> str:
        return f"{self._sender} {topic}"

    def _hint_others(self, topic: str) -> None:
        if not self._tells:
            return
        if topic.startswith(FEEDS):
            self._hint_feed(topic)
            return
        wait = self._pace.wait(topic, self._loop.time(), coalesced=topic in self._unsent or topic in self._late)
        if wait is None:
            return
        if wait:
            self._late.add(topic)
            self._loop.call_later(wait, self._send_late, topic)
        else:
            self._send_soon(topic)

    def _send_late(self, topic: str) -> None:
        self._late.discard(topic)
        self._send_soon(topic)

    def _hint_feed(self, topic: str) -> None:
        """Let the hint of a feed leave with those of others."""
        if not self._feeds:
            now = self._loop.time()
            at = max(now, self._feeds_at)
            self._feeds_at = at + FEEDS_SPACING
            self._loop.call_later(at - now, self._send_feeds)
        self._feeds.add(topic)

    def _send_feeds(self) -> None:
        topics, self._feeds = self._feeds, set()
        self._send_soon(*topics)

    def _send_soon(self, *topics: str) -> None:
        self._unsent.update(topics)
        if self._sending is None and not self._closed:
            self._sending = self._loop.create_task(self._send(), name="headrace-hints")

    async def _send(self) -> None:
        try:
            while self._unsent:
                topics, self._unsent = sorted(self._unsent), set()
                with contextlib.suppress(HeadraceError):  # the poll is the truth
                    await self._publish([self._payload(topic) for topic in topics])
        finally:
            self._sending = None

    async def subscribe(self, on_hint: OnHint) -> Callable[[], None]:
        """Call `on_hint(topic)` on this event loop for each hint, own ones included; return how to stop it."""
        stop = self._subscribers.add(on_hint)
        if self._listens and self._listener is None and asyncio.get_running_loop() is self._loop:
            self._listener = asyncio.create_task(self._keep_listening(), name="headrace-listen")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FIRST_WAIT):
                    await self._tried.wait()
        return stop

    async def close(self) -> None:
        """Stop listening; hints not yet sent are dropped, those being sent are finished."""
        self._closed = True
        self._unsent.clear()
        self._subscribers.clear()
        if self._listener is not None:
            self._listener.cancel()
            await asyncio.gather(self._listener, return_exceptions=True)
        if self._sending is not None:
            await asyncio.wait([self._sending], timeout=2)

    async def _keep_listening(self) -> None:
        while True:
            self._deaf = True
            try:
                await self._listen()
            except (HeadraceError, TimeoutError) as error:
                self._complain(error)
            self._deaf = True
            self._tried.set()
            await asyncio.sleep(self._pause)
            self._pause = min(self._pause * 2, _LONGEST_PAUSE)

    def _complain(self, error: Exception) -> None:
        """Say once that nothing is heard; a link that broke may be remade in a moment."""
        if self._deaf and not self._said:
            self._said = True
            reason = str(error) or "no answer in time"
            LOG.warning("hints of other processes are not heard, work is noticed by the poll: %s", reason)

    def _connected(self) -> None:
        """Note that hints are heard from now on."""
        if self._said:
            LOG.info("hints of other processes are heard again")
        self._deaf = self._said = False
        self._pause = _FIRST_PAUSE
        self._tried.set()

    def _heard(self, payload: str) -> None:
        """Tell the subscribers of a hint that another process sent."""
        sender, _, topic = payload.partition(" ")
        if sender != self._sender:
            self._subscribers.tell(topic)


class Pace:
    """When the hints of a topic may leave: each costs its spacing, and up to `CREDIT` may be owed."""

    def __init__(self) -> None:
        #: By topic: when it was hinted last, how many came close behind one another, when nothing is owed any more.
        self._topics: dict[str, tuple[float, int, float]] = {}

    def wait(self, topic: str, now: float, *, coalesced: bool) -> float | None:
        """Return how long a hint has to wait, 0 for not at all; None when it goes with one that is to leave anyway."""
        last, close, free_at = self._topics.get(topic, (-1.0, 0, now))
        close = close + 1 if now - last < FLOOD_GAP else 0
        if coalesced:
            self._topics[topic] = now, close, free_at
            return None
        if topic not in self._topics and len(self._topics) >= MANY_TOPICS:
            self._topics = {name: state for name, state in self._topics.items() if state[2] > now}
        free_at = max(free_at, now) + (FLOOD_SPACING if close >= FLOOD else SPACING)
        self._topics[topic] = now, close, free_at
        return max(0.0, free_at - now - CREDIT)

    def take(self, topic: str, now: float) -> bool:
        """Let a hint leave at once and return True, or change nothing."""
        before = self._topics.get(topic)
        if self.wait(topic, now, coalesced=False) == 0:
            return True
        if before is not None:
            self._topics[topic] = before
        return False
