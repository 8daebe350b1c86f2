"""The calls that a worker has out on the cluster."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from headrace.model.farm import Fence


@dataclass(slots=True, eq=False)
class Out:
    """A call that is out."""

    fence: Fence
    queue: str
    #: Seconds that it may run once it has begun.
    timeout: float
    sent_at: float
    #: What Ray knows it by, once it was sent.
    ref: Any = None
    #: When it was first seen that it has begun.
    begun_at: float | None = None
    #: When it was interrupted, and whether its process was told to end since.
    cancelled_at: float | None = None
    forced: bool = False
    #: What came of it: an answer, or an error.
    ended: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def settle(self, ending: Any) -> None:
        """End it, with an answer or an error as its value; the first counts."""
        if not self.ended.done():
            self.ended.set_result(ending)


class Book:
    """Counts what is out, until Ray says that it has ended: one that was cancelled may take its room a moment more."""

    def __init__(self) -> None:
        self._out: set[Out] = set()
        self.counts: Counter[str] = Counter()
        self._peak: Counter[str] = Counter()
        self._peak_before: Counter[str] = Counter()

    def add(self, out: Out) -> None:
        """Note that a call is out."""
        self._out.add(out)
        self.counts[out.queue] += 1
        self._peak |= self.counts

    def remove(self, out: Out) -> None:
        """Note that it is not any more."""
        if out in self._out:
            self._out.remove(out)
            self.counts[out.queue] -= 1

    def __iter__(self) -> Iterator[Out]:
        return iter(tuple(self._out))

    @property
    def peak(self) -> Counter[str]:
        """The most that was out, by queue, in the time of the last look and of the one before."""
        return self._peak | self._peak_before

    def turn(self) -> None:
        """Begin the time of another look."""
        self._peak_before, self._peak = self._peak, +self.counts
