"""The buckets of one pool in the limiter, and what is asked of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from headrace.llm.quota.values import gate_name
from headrace.model.errors import StoreUnavailableError
from headrace.model.limits import LONGEST_CLOSING, Rate
from headrace.ports.limiter import Limiter, Taken

T = TypeVar("T")

#: Buckets that never limit: they are only ever open or closed.
_OPEN = Rate(per_second=1e9, burst=1e9)
#: A process that dies with the right to try takes it along; after so long there is another.
_PROBE = Rate(per_second=0.5, burst=1.0)
#: For so long after a closing a pool stays one that has to be tried first, if nobody tries it.
_DOUBTFUL = timedelta(seconds=30)
#: A limiter that says nothing for so long is away.
_PATIENCE_SECONDS = 2.0
#: More than any bucket holds.
_ALL = 1e15


@dataclass(frozen=True, slots=True)
class Lease:
    """What the limiter gave of a pool, and how the pool stands."""

    units: Mapping[str, float]
    #: seconds until more is there; 0: all was given
    wait: float = 0.0
    closed: bool = False
    #: it was closed, and nobody knows yet whether the provider lets the next call pass
    doubtful: bool = False


class Central:
    """Verbs on the buckets of a pool. All raise StoreUnavailableError."""

    def __init__(self, limiter: Limiter, pool: str) -> None:
        self._limiter = limiter
        self._gate, self._doubt, self._probe = gate_name(pool), f"llm:{pool}:doubt", f"llm:{pool}:probe"
        self._prefix = f"llm:{pool}:"
        #: what is declared again when the limiter does not know it
        self.rates: Mapping[str, Rate] = {}

    async def declare(self) -> None:
        """Set the rates; levels stay."""
        named = {self._prefix + key: rate for key, rate in self.rates.items()}
        await _soon(
            self._limiter.declare({self._gate: _OPEN, self._doubt: _OPEN, self._probe: _PROBE, **named}),
        )

    async def lease(self, wanted: Mapping[str, float], least: Mapping[str, float]) -> Lease:
        """Take units by dimension, of each up to what is wanted, but of none less than its least."""
        states = {self._gate: 1.0, self._doubt: 1.0}
        names = {self._prefix + key: units for key, units in wanted.items()}
        leasts = {self._prefix + key: units for key, units in least.items()}
        taken = await self._take({**states, **names}, {**states, **leasts})
        units = {key: taken.units.get(self._prefix + key, 0.0) for key in wanted}
        return Lease(
            units,
            taken.wait.total_seconds(),
            closed=not taken.units.get(self._gate),
            doubtful=not taken.units.get(self._doubt),
        )

    async def may_try(self) -> bool:
        """Take the right to send the one call that goes ahead after a closing."""
        return bool((await self._take({self._probe: 1.0}, {self._probe: 1.0})).units.get(self._probe))

    async def leave_trying(self) -> None:
        """Give back the right to try: the call was not sent."""
        await _soon(self._limiter.give_back({self._probe: 1.0}))

    async def shut(self, wait: timedelta) -> None:
        """Let nothing of the pool pass for `wait`, and then one call first."""
        wait = min(wait, LONGEST_CLOSING)
        await _soon(self._limiter.close_bucket(self._doubt, min(wait + _DOUBTFUL, LONGEST_CLOSING)))
        await _soon(self._limiter.close_bucket(self._gate, wait))

    async def trust(self) -> None:
        """Let calls flow again, beginning with empty buckets."""
        await self._take({self._prefix + key: _ALL for key in self.rates}, {})
        await _soon(self._limiter.open_bucket(self._doubt))
        await self.leave_trying()

    async def closed(self) -> float:
        """Return for how many seconds the pool is closed."""
        levels = await _soon(self._limiter.levels([self._gate]))
        return levels[self._gate].closed.total_seconds() if self._gate in levels else 0.0

    async def give_back(self, units: Mapping[str, float]) -> None:
        """Return units by dimension; negative ones are charged."""
        await _soon(self._limiter.give_back({self._prefix + key: amount for key, amount in units.items()}))

    async def _take(self, wanted: Mapping[str, float], least: Mapping[str, float]) -> Taken:
        taken = await _soon(self._limiter.take(wanted, some=True, least=least))
        if not taken.unknown:
            return taken
        await self.declare()
        missing = {name: units for name, units in wanted.items() if name in taken.unknown}
        more = await _soon(self._limiter.take(missing, some=True, least=least))
        return Taken({**taken.units, **more.units}, max(taken.wait, more.wait), more.unknown)


async def _soon(answer: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            return await answer
    except TimeoutError:
        raise StoreUnavailableError(f"The server that counts rates said nothing for {_PATIENCE_SECONDS:g} s.") from None
