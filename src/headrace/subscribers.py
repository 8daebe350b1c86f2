"""Who listens for hints in this process, each on the event loop it subscribed on; every notifier has one such list."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

OnHint = Callable[[str], None]


class Subscribers:
    """Tells every subscriber of a topic soon, once for hints that come before it was told. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: list[_Subscriber] = []

    def add(self, on_hint: OnHint) -> Callable[[], None]:
        """Add one on the running loop; return how to stop it."""
        subscriber = _Subscriber(asyncio.get_running_loop(), on_hint)
        with self._lock:
            self._all.append(subscriber)

        def stop() -> None:
            subscriber.stopped = True
            with self._lock:
                self._all = [other for other in self._all if other is not subscriber]

        return stop

    def tell(self, topic: str) -> None:
        """Tell all of `topic`, each on its loop."""
        here = running_loop()
        with self._lock:
            for subscriber in self._all:
                subscriber.tell(topic, here)

    def clear(self) -> None:
        """Stop all of them."""
        with self._lock:
            for subscriber in self._all:
                subscriber.stopped = True
            self._all = []


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs in this thread, if one does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class _Subscriber:
    """One subscription. `_pending` holds the topics that its loop was woken for and has not heard yet."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_hint: OnHint) -> None:
        self._loop, self._on_hint = loop, on_hint
        self._pending: set[str] = set()
        self.stopped = False

    def tell(self, topic: str, here: asyncio.AbstractEventLoop | None) -> None:
        if topic in self._pending:
            return
        self._pending.add(topic)
        try:
            if here is self._loop:  # which need not be woken: that costs a write, a read and a turn of the loop
                self._loop.call_soon(self._hear, topic)
            else:
                self._loop.call_soon_threadsafe(self._hear, topic)
        except RuntimeError:  # the loop was closed: nobody is there to hear
            self._pending.discard(topic)

    def _hear(self, topic: str) -> None:
        # Before the call: a hint given from here on announces a change that the subscriber may not have seen.
        self._pending.discard(topic)
        if not self.stopped:
            self._on_hint(topic)
