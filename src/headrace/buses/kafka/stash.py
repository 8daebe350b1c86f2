"""What was read and is not yet handed out: filled by a member's thread, emptied by the event loop."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from headrace.model.message_log import Partition
from headrace.ports.bus import Delivery


class Stash:
    """Guaranteed: nothing is lost when a call is cancelled, or when a partition is paused after its messages came."""

    def __init__(self) -> None:
        """It is empty."""
        self._lock = threading.Lock()
        self._kept: list[Delivery] = []
        self._paused: set[Partition] = set()

    def put(self, deliveries: Iterable[Delivery]) -> None:
        """Add what was read."""
        with self._lock:
            self._kept.extend(deliveries)

    def take(self, limit: int) -> list[Delivery]:
        """Return what may be handed out, in order, at most `limit`."""
        taken: list[Delivery] = []
        with self._lock:
            left: list[Delivery] = []
            for delivery in self._kept:
                free = len(taken) < limit and delivery.place not in self._paused
                (taken if free else left).append(delivery)
            self._kept = left
        return taken

    def drop(self, places: Iterable[Partition]) -> None:
        """Forget partitions that are another member's now."""
        gone = set(places)
        with self._lock:
            self._kept = [delivery for delivery in self._kept if delivery.place not in gone]
            self._paused -= gone

    def pause(self, places: Iterable[Partition]) -> None:
        """Hand out nothing more of partitions."""
        with self._lock:
            self._paused.update(places)

    def resume(self, places: Iterable[Partition]) -> None:
        """Hand out of partitions again."""
        with self._lock:
            self._paused.difference_update(places)

    @property
    def paused(self) -> frozenset[Partition]:
        """Which partitions are paused."""
        with self._lock:
            return frozenset(self._paused)
