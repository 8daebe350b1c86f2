"""Hints by PUBLISH: sent after the script, coalesced per topic, lost without harm.

Own subscribers hear at once. To other processes a hint leaves at once, except in a flood: then those of one topic leave
every few milliseconds. Own hints are recognised by their sender when they come back. SUBSCRIBE has a connection of its
own, remade when it breaks; while it is away, and without it, everything works by polling.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from headrace.model.errors import HeadraceError
from headrace.stores.redis.connection import Server
from headrace.stores.redis.wire import Wire
from headrace.subscribers import OnHint, Subscribers, running_loop

#: How often the hints of a topic may leave, on average, and how many may leave at once.
SPACING, BURST = 0.0025, 32
_MANY_TOPICS = 1_000
#: How often the listening connection is asked whether it still lives, and how long it may take to answer.
CHECK_EVERY, CHECK_TIMEOUT = 10.0, 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
#: How long `subscribe` waits for the first connection before it goes on without.
_FIRST_WAIT = 5.0


@dataclass(frozen=True, slots=True)
class Ride:
    """A hint that a script carries: what it says, and on which channel."""

    channel: str
    payload: str


class RedisNotifier:
    """The notifier port. It lives on the event loop that made it; hints may come from any thread."""

    def __init__(self, server: Server, *, listen: bool = True) -> None:
        self._server, self._listening = server, listen
        self._channel, self._sender = f"{server.options.root}:hints", uuid4().hex[:16]
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
        """Return the hint for a script that tells others by itself; None in a flood.

        This process is still to be told, by `hint_here`; without a ride all are, by `hint`.
        """
        waits = topic in self._unsent or topic in self._late
        if waits or self._closed or not self._listening or running_loop() is not self._loop:
            return None
        if self._pace.wait(topic, self._loop.time(), only_now=True):
            return None
        return Ride(self._channel, f"{self._sender} {topic}")

    def hint_here(self, topic: str) -> None:
        """Tell the subscribers of this process only."""
        self._subscribers.tell(topic)

    def _hint_others(self, topic: str) -> None:
        if not self._listening or self._closed or topic in self._unsent or topic in self._late:
            return
        wait = self._pace.wait(topic, self._loop.time())
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
            self._sending = self._loop.create_task(self._send(), name="headrace-publish")

    async def _send(self) -> None:
        try:
            while self._unsent:
                topics, self._unsent = sorted(self._unsent), set()
                sent = [self._server.call("PUBLISH", self._channel, f"{self._sender} {topic}") for topic in topics]
                # A hint may be lost; the poll is the truth.
                await asyncio.gather(*sent, return_exceptions=True)
        finally:
            self._sending = None

    async def subscribe(self, on_hint: OnHint) -> Callable[[], None]:
        """Call `on_hint(topic)` on this event loop for each hint, own ones included; return how to stop it."""
        stop = self._subscribers.add(on_hint)
        if self._listening and self._listener is None and asyncio.get_running_loop() is self._loop:
            self._listener = asyncio.create_task(self._keep_listening(), name="headrace-subscribe")
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
        pause = _FIRST_PAUSE
        while True:
            with contextlib.suppress(HeadraceError, TimeoutError):
                wire = await self._server.connect(factory=_Listening)
                assert isinstance(wire, _Listening)
                pause = _FIRST_PAUSE
                try:
                    await self._listen_on(wire)
                finally:
                    wire.abort()
            self._tried.set()
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _listen_on(self, wire: _Listening) -> None:
        wire.on_message = self._on_message
        await wire.ask(("SUBSCRIBE", self._channel))
        self._tried.set()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CHECK_EVERY):
                    await wire.ended.wait()
            # A link that was cut silently looks merely quiet. Raises where the connection is closed.
            async with asyncio.timeout(CHECK_TIMEOUT):
                await wire.ask(("PING",))

    def _on_message(self, payload: str) -> None:
        sender, _, topic = payload.partition(" ")
        if sender != self._sender:
            self._subscribers.tell(topic)


class _Listening(Wire):
    """A connection in the state of a subscriber: messages come between the answers."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.on_message: Callable[[str], None] = lambda _: None

    def answered(self, value: Any) -> None:
        """Tell of a message; anything else is an answer."""
        if isinstance(value, list) and value and value[0] == "message":
            self.on_message(str(value[2]))
        else:
            super().answered(value)


class _Pace:
    """When the hints of a topic may leave: each costs its spacing, and up to `BURST` of them may be owed."""

    def __init__(self) -> None:
        #: By topic: when nothing is owed any more.
        self._free_at: dict[str, float] = {}

    def wait(self, topic: str, now: float, *, only_now: bool = False) -> float:
        """Return how long a hint has to wait, 0 for not at all; one that must go now and may not changes nothing."""
        free_at = max(self._free_at.get(topic, now), now) + SPACING
        wait = max(0.0, free_at - now - BURST * SPACING)
        if wait and only_now:
            return wait
        if topic not in self._free_at and len(self._free_at) >= _MANY_TOPICS:
            self._free_at = {name: at for name, at in self._free_at.items() if at > now}
        self._free_at[topic] = free_at
        return wait
