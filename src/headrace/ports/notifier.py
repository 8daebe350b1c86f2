"""The notifier port: hints that something changed. A hint may be lost or come late; the poll is the truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Notifier(Protocol):
    """Topics are `queue:NAME` (jobs became ready) and `done` (jobs became final)."""

    def hint(self, topic: str) -> None:
        """Tell other processes soon, coalesced per topic. Never raises; call after the commit."""
        ...

    async def subscribe(self, on_hint: Callable[[str], None]) -> Callable[[], None]:
        """Call `on_hint(topic)` on this event loop for each hint, own ones included; return how to stop it."""
        ...

    async def close(self) -> None:
        """Stop listening; hints not yet sent are sent or dropped."""
        ...
