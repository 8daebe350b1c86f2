"""Hints within this process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable


class MemoryNotifier:
    """`ports.notifier.Notifier` in this process, across event loops and threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscribers: list[_Subscriber] = []

    def hint(self, topic: str) -> None:
        """Tell every subscriber soon, once for hints that come before it was told."""
        with self._lock:
            for subscriber in self._subscribers:
                subscriber.hint(topic)

    async def subscribe(self, on_hint: Callable[[str], None]) -> Callable[[], None]:
        """Call `on_hint(topic)` on this event loop for each hint; return how to stop it."""
        subscriber = _Subscriber(asyncio.get_running_loop(), on_hint)
        with self._lock:
            self._subscribers.append(subscriber)

        def stop() -> None:
            subscriber.stopped = True
            with self._lock:
                self._subscribers = [other for other in self._subscribers if other is not subscriber]

        return stop

    async def close(self) -> None:
        """Stop listening; hints not yet told are dropped."""
        with self._lock:
            for subscriber in self._subscribers:
                subscriber.stopped = True
            self._subscribers = []


class _Subscriber:
    """One subscription. `_pending` holds the topics that its loop was woken for and has not told yet."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_hint: Callable[[str], None]) -> None:
        self._loop = loop
        self._on_hint = on_hint
        self._pending: set[str] = set()
        self.stopped = False

    def hint(self, topic: str) -> None:
        if topic in self._pending or self._loop.is_closed():
            return
        self._pending.add(topic)
        try:
            self._loop.call_soon_threadsafe(self._tell, topic)
        except RuntimeError:  # the loop was closed in this moment: nobody is there to be told
            self._pending.discard(topic)

    def _tell(self, topic: str) -> None:
        # Before the call: a hint given from here on announces a change that the subscriber may not have seen.
        self._pending.discard(topic)
        if not self.stopped:
            self._on_hint(topic)
