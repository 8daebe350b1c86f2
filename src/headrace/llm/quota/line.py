"""Callers that wait for a pool, in the order in which they came."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from headrace.model.quota import Estimate

if TYPE_CHECKING:
    from headrace.llm.quota.reservation import Reservation


class Waiter:
    """A caller, what it needs by dimension, and until when it waits (time of the loop; None: for ever)."""

    __slots__ = ("estimate", "future", "units", "until")

    def __init__(self, estimate: Estimate, units: Mapping[str, float], *, until: float | None) -> None:
        self.estimate, self.units, self.until = estimate, units, until
        self.future: asyncio.Future[Reservation] = asyncio.get_running_loop().create_future()


class Line:
    """First come, first served: who needs much is not overtaken by those who need little."""

    def __init__(self) -> None:
        self._waiters: deque[Waiter] = deque()
        #: what all of them need, by dimension
        self.needed: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._waiters)

    def __iter__(self) -> Iterator[Waiter]:
        return iter(self._waiters)

    @property
    def head(self) -> Waiter | None:
        """Who is next."""
        return self._waiters[0] if self._waiters else None

    def join(self, waiter: Waiter) -> None:
        """Wait behind the others."""
        self._waiters.append(waiter)
        self._count(waiter, 1)

    def leave(self, waiter: Waiter) -> None:
        """Wait no longer; who has left already is no error."""
        if self._waiters and self._waiters[0] is waiter:
            self._waiters.popleft()
        elif waiter in self._waiters:
            self._waiters.remove(waiter)
        else:
            return
        self._count(waiter, -1)

    def reprice(self, needs: Callable[[Estimate], Mapping[str, float]]) -> None:
        """Let them need other units: the dimensions of the pool have changed."""
        for waiter in self._waiters:
            self._count(waiter, -1)
            waiter.units = needs(waiter.estimate)
            self._count(waiter, 1)

    def _count(self, waiter: Waiter, times: int) -> None:
        for key, units in waiter.units.items():
            self.needed[key] = self.needed.get(key, 0.0) + times * units
        if not self._waiters:
            self.needed.clear()
