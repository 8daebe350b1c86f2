"""Hints within this process."""

from __future__ import annotations

from collections.abc import Callable

from headrace.subscribers import OnHint, Subscribers


class MemoryNotifier:
    """`ports.notifier.Notifier` in this process, across event loops and threads."""

    def __init__(self) -> None:
        self._subscribers = Subscribers()

    def hint(self, topic: str) -> None:
        """Tell every subscriber soon, once for hints that come before it was told."""
        self._subscribers.tell(topic)

    async def subscribe(self, on_hint: OnHint) -> Callable[[], None]:
        """Call `on_hint(topic)` on this event loop for each hint; return how to stop it."""
        return self._subscribers.add(on_hint)

    async def close(self) -> None:
        """Stop listening; hints not yet told are dropped."""
        self._subscribers.clear()
