"""The host of a process's work with events: relay, agents and callback service, started and stopped together."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from headrace.engine.events.consumer import Consumer
from headrace.engine.events.waiting import HANDLES
from headrace.engine.loops.leadership import Leadership
from headrace.engine.loops.loop import Loop
from headrace.model.errors import HeadraceError
from headrace.ports.handle_store import HandleStore
from headrace.ports.notifier import Notifier

#: Topic of hints that the outbox has gained a row.
EVENTS = "events"


class CallbackWatch(Loop):
    """Starts the callback service once there is a handle: who uses none pays for none."""

    name = "callback-watch"

    def __init__(self, handles: HandleStore, service: Consumer, interval: timedelta = timedelta(seconds=2)) -> None:
        super().__init__(interval)
        self._handles = handles
        self._service = service
        self._started = False

    async def step(self) -> None:
        """Look for the first handle. What came before it is in the bus: a new group begins with the first message."""
        if not self._started and await self._handles.list_handles(waiting=False, limit=1):
            self._service.start()
            self._started = True


class EventHost:
    """Does its part until it is stopped. Stopping twice is allowed, also without a start."""

    def __init__(  # noqa: PLR0913 - collaborators arrive by constructor
        self, notifier: Notifier, consumers: Sequence[Consumer], loops: Sequence[Loop], *,
        relay: tuple[Leadership, Loop] | None, callback: tuple[Consumer, CallbackWatch] | None,
        close: Callable[[], Awaitable[None]],
    ) -> None:  # fmt: skip
        """`close` closes the bus and what else was opened for it."""
        self._notifier = notifier
        self._consumers = [*consumers, *(() if callback is None else callback[:1])]
        self._at_once = consumers
        self._relay = relay
        self._watch = None if callback is None else callback[1]
        self._loops: list[Loop] = [*(relay or ()), *loops, *(() if callback is None else callback[1:])]
        self._close = close
        self._unsubscribe: Callable[[], None] | None = None

    async def start(self) -> None:
        """Begin."""
        if self._relay is not None or self._watch is not None:
            self._unsubscribe = await self._notifier.subscribe(self._on_hint)
        for loop in self._loops:
            loop.start()
        for consumer in self._at_once:
            consumer.start()

    def _on_hint(self, topic: str) -> None:
        if topic == EVENTS and self._relay is not None:
            self._relay[1].wake()
        if topic == HANDLES and self._watch is not None:
            self._watch.wake()

    async def stop(self, grace: timedelta) -> None:
        """Receive nothing more, let handlers end within `grace`, and give up leadership and membership."""
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        for loop in self._loops:
            await loop.stop()
        await asyncio.gather(*(consumer.stop(grace) for consumer in self._consumers))
        if self._relay is not None:
            with contextlib.suppress(HeadraceError):
                await self._relay[0].resign()
        await self._close()
