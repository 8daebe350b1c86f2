"""Hints by NOTIFY: sent after the commit, coalesced per topic, lost without harm. One may ride on the statement that
inserts a lone job.

Own subscribers hear at once. To other processes a hint leaves at once, except in a flood: hints of one topic that
follow one another faster than anybody could answer them leave every 10 ms after the first few. Own hints are
recognised by their sender when they come back. LISTEN has a connection of its own, remade when it
breaks; behind a pooler it needs `listen_dsn`, a way past the pooler, and without one everything works by polling.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from headrace.model.errors import HeadraceError
from headrace.stores.postgres.connection import Connection
from headrace.stores.postgres.database import Database
from headrace.stores.postgres.faults import sorted_faults
from headrace.subscribers import OnHint, Subscribers, running_loop

#: So many hints of a topic, each within this time of the last, are a flood. A caller that waits for the answer to a
#: job before it enqueues the next is not so fast; a job that ends and closes its batch gives two at once.
FLOOD, FLOOD_GAP = 4, 0.002
#: How often the hints of a topic may leave, in a flood and otherwise, on average over the time in `CREDIT`.
FLOOD_SPACING, SPACING, CREDIT = 0.01, 0.0025, 0.08
_MANY_TOPICS = 1_000
#: How often the listening connection is asked whether it still lives, and how long it may take to answer.
CHECK_EVERY, CHECK_TIMEOUT = 10.0, 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
#: How long `subscribe` waits for the first connection before it goes on without.
_FIRST_WAIT = 5.0


@dataclass(frozen=True, slots=True)
class Ride:
    """A hint that a statement carries: what it says, and on which channel."""

    channel: str
    payload: str


class PostgresNotifier:
    """The notifier port. It lives on the event loop that made it; hints may come from any thread."""

    def __init__(self, database: Database, *, listen: bool, listen_dsn: str | None = None) -> None:
        self._database, self._listen_dsn = database, listen_dsn
        self._told = listen
        self._listening = listen and (listen_dsn is not None or not database.options.pooled)
        self._channel, self._sender = f"headrace_{database.schema}", uuid4().hex[:16]
        self._loop = asyncio.get_running_loop()
        self._subscribers = Subscribers()
        self._pace = _Pace()
        self._unsent: set[str] = set()
        #: Topics that wait for their turn.
        self._late: set[str] = set()
        self._sending: asyncio.Task[None] | None = None
        self._listener: asyncio.Task[None] | None = None
        self._tried = asyncio.Event()
        self._closed = False

    @property
    def listening(self) -> bool:
        """Whether hints of other processes are listened for; else this process polls only."""
        return self._listening

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
        """Return the hint for a statement that tells others behind its own commit.

        None in a flood, and behind a pooler, where each statement runs in a transaction that we open.

        This process is still to be told, by `hint_here`; without a ride all are, by `hint`.
        """
        waits = topic in self._unsent or topic in self._late
        if waits or self._closed or not self._told or self._database.options.pooled:
            return None
        if running_loop() is not self._loop:
            return None
        if not self._pace.take(topic, self._loop.time()):
            return None
        return Ride(self._channel, f"{self._sender} {topic}")

    def hint_here(self, topic: str) -> None:
        """Tell the subscribers of this process only."""
        self._subscribers.tell(topic)

    def _hint_others(self, topic: str) -> None:
        if not self._told:
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

    def _send_soon(self, topic: str) -> None:
        self._unsent.add(topic)
        if self._sending is None and not self._closed:
            self._sending = self._loop.create_task(self._send(), name="headrace-notify")

    async def _send(self) -> None:
        try:
            while self._unsent:
                topics, self._unsent = sorted(self._unsent), set()
                payloads = [f"{self._sender} {topic}" for topic in topics]
                with contextlib.suppress(HeadraceError):  # a hint may be lost; the poll is the truth
                    await self._database.fetch("notify", channel=self._channel, payloads=payloads)
        finally:
            self._sending = None

    async def subscribe(self, on_hint: OnHint) -> Callable[[], None]:
        """Call `on_hint(topic)` on this event loop for each hint, own ones included; return how to stop it."""
        stop = self._subscribers.add(on_hint)
        if self._listening and self._listener is None and asyncio.get_running_loop() is self._loop:
            self._listener = asyncio.create_task(self._keep_listening(), name="headrace-listen")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FIRST_WAIT):
                    await self._tried.wait()
        return stop

    async def close(self) -> None:
        """Stop listening; hints not yet sent are dropped, one being sent is finished."""
        self._closed = True
        self._unsent.clear()
        self._subscribers.clear()
        if self._listener is not None:
            self._listener.cancel()
            await asyncio.gather(self._listener, return_exceptions=True)
        if self._sending is not None:
            await asyncio.wait([self._sending], timeout=2)

    async def _keep_listening(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            with contextlib.suppress(HeadraceError), sorted_faults():
                connection = await self._database.connect(dsn=self._listen_dsn)
                pause = _FIRST_PAUSE
                try:
                    await self._listen_on(connection)
                finally:
                    connection.terminate()
            self._tried.set()
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _listen_on(self, connection: Connection) -> None:
        ended = asyncio.Event()
        connection.add_termination_listener(lambda _: ended.set())
        await connection.add_listener(self._channel, self._on_notify)
        self._tried.set()
        while not connection.is_closed():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CHECK_EVERY):
                    await ended.wait()
            if not ended.is_set():  # a link that was cut silently looks merely quiet
                async with asyncio.timeout(CHECK_TIMEOUT):
                    await self._database.check(connection)

    def _on_notify(self, _connection: Any, _pid: int, _channel: str, payload: object) -> None:
        sender, _, topic = str(payload).partition(" ")
        if sender != self._sender:
            self._subscribers.tell(topic)


class _Pace:
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
        if topic not in self._topics and len(self._topics) >= _MANY_TOPICS:
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
