"""The buckets of one pool in the limiter, and what is asked of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from headrace.llm.quota.values import gate_name
from headrace.model.errors import StoreUnavailableError
from headrace.model.learning import LEAST_FLOW, Learnt
from headrace.model.limits import LONGEST_CLOSING, Level, Rate
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
#: Who takes the right to change what was learnt changes it; the others read it.
_GROWTH, _CUT = Rate(per_second=2.0, burst=1.0), Rate(per_second=1.0, burst=1.0)
#: A bucket into which next to nothing flows keeps a number for all processes: what was learnt is never as little as
#: flows in during a lifetime, and less than that was never written. Who wrote may have died before it was.
_NUMBER = Rate(per_second=1e-12, burst=1e12)
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
    #: this process is the one that lets the flow grow now
    grows: bool = False


class Central:
    """Verbs on the buckets of a pool. All raise StoreUnavailableError."""

    def __init__(self, limiter: Limiter, pool: str) -> None:
        self._limiter, self._prefix = limiter, f"llm:{pool}:"
        self._gate, self._doubt, self._probe = gate_name(pool), f"llm:{pool}:doubt", f"llm:{pool}:probe"
        self._growth, self._cut = f"llm:{pool}:growth", f"llm:{pool}:cut"
        self._fixed = {
            self._gate: _OPEN, self._doubt: _OPEN, self._probe: _PROBE, self._growth: _GROWTH, self._cut: _CUT,
        }  # fmt: skip
        #: what is declared again when the limiter does not know it
        self._rates: Mapping[str, Rate] = {}
        self._whole: Mapping[str, float] = {}

    async def declare(self, rates: Mapping[str, Rate], whole: Mapping[str, float]) -> None:
        """Set the rates of dimensions; levels stay. Those in `whole` are filled where they are not known."""
        self._rates = {self._prefix + key: rate for key, rate in rates.items()}
        self._whole = {self._prefix + key: units for key, units in whole.items()}
        await self._declare()

    async def _declare(self) -> None:
        known = await soon(self._limiter.levels(list(self._whole))) if self._whole else {}
        await soon(self._limiter.declare({**self._fixed, **self._rates}))
        fill = {name: units for name, units in self._whole.items() if name not in known}
        if fill:
            await soon(self._limiter.give_back(fill))

    async def lease(self, wanted: Mapping[str, float], least: Mapping[str, float], *, grow: bool = False) -> Lease:
        """Take units by dimension, of each up to what is wanted, but of none less than its least.

        `grow`: take the right to let the flow grow, too.
        """
        states = dict.fromkeys((self._gate, self._doubt, *([self._growth] if grow else [])), 1.0)
        names = {self._prefix + key: units for key, units in wanted.items()}
        leasts = {self._prefix + key: units for key, units in least.items()}
        taken = await self._take({**states, **names}, {**states, **leasts})
        return Lease(
            {key: taken.units.get(self._prefix + key, 0.0) for key in wanted},
            taken.wait.total_seconds(),
            closed=not taken.units.get(self._gate),
            doubtful=not taken.units.get(self._doubt),
            grows=bool(taken.units.get(self._growth)),
        )

    async def may_try(self) -> bool:
        """Take the right to send the one call that goes ahead after a closing."""
        return bool((await self._take({self._probe: 1.0}, {self._probe: 1.0})).units.get(self._probe))

    async def leave_trying(self) -> None:
        """Give back the right to try: the call was not sent."""
        await soon(self._limiter.give_back({self._probe: 1.0}))

    async def shut(self, wait: timedelta) -> None:
        """Let nothing of the pool pass for `wait`, and then one call first."""
        wait = min(wait, LONGEST_CLOSING)
        await soon(self._limiter.close_bucket(self._doubt, min(wait + _DOUBTFUL, LONGEST_CLOSING)))
        await soon(self._limiter.close_bucket(self._gate, wait))

    async def trust(self) -> None:
        """Let calls flow again, beginning with empty buckets."""
        flowing = [name for name in self._rates if name not in self._whole]
        await self._take(dict.fromkeys(flowing, _ALL), {})
        await soon(self._limiter.open_bucket(self._doubt))
        await self.leave_trying()

    async def closed(self) -> float:
        """Return for how many seconds the pool is closed."""
        levels = await soon(self._limiter.levels([self._gate]))
        return levels[self._gate].closed.total_seconds() if self._gate in levels else 0.0

    async def levels(self, keys: Collection[str]) -> Mapping[str, Level]:
        """Return how buckets stand, those of them that are known."""
        levels = await soon(self._limiter.levels([self._prefix + key for key in keys]))
        return {name.removeprefix(self._prefix): level for name, level in levels.items()}

    async def may_cut(self) -> bool:
        """Take the right to lower what was learnt: once per closing."""
        return bool((await self._take({self._cut: 1.0}, {self._cut: 1.0})).units.get(self._cut))

    async def read_learnt(self, kind: str) -> Learnt | None:
        """Return what processes have learnt; None: nothing yet. `kind` keeps numbers of different meaning apart."""
        flow, refused = self._numbers(kind)
        levels = await soon(self._limiter.levels([flow, refused]))
        written = {name: level.units for name, level in levels.items() if level.units > LEAST_FLOW / 2}
        return Learnt(written[flow], written.get(refused)) if flow in written else None

    async def write_learnt(self, kind: str, learnt: Learnt) -> None:
        """Keep what was learnt for all processes."""
        flow, refused = self._numbers(kind)
        await soon(self._limiter.declare({flow: _NUMBER, refused: _NUMBER}))
        levels = await soon(self._limiter.levels([flow, refused]))
        new = {flow: learnt.flow, refused: learnt.refused or 0.0}
        changes = {name: number - levels[name].units for name, number in new.items() if name in levels}
        await soon(self._limiter.give_back(changes))

    def _numbers(self, kind: str) -> tuple[str, str]:
        return f"{self._prefix}{kind}:flow", f"{self._prefix}{kind}:refused"

    async def give_back(self, units: Mapping[str, float]) -> None:
        """Return units by dimension; negative ones are charged."""
        await soon(self._limiter.give_back({self._prefix + key: amount for key, amount in units.items()}))

    async def _take(self, wanted: Mapping[str, float], least: Mapping[str, float]) -> Taken:
        taken = await soon(self._limiter.take(wanted, some=True, least=least))
        if not taken.unknown:
            return taken
        await self._declare()
        missing = {name: units for name, units in wanted.items() if name in taken.unknown}
        more = await soon(self._limiter.take(missing, some=True, least=least))
        return Taken({**taken.units, **more.units}, max(taken.wait, more.wait), more.unknown)


async def soon(answer: Awaitable[T]) -> T:
    """Return what a limiter answers. Raises StoreUnavailableError when it says nothing for too long."""
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            return await answer
    except TimeoutError:
        raise StoreUnavailableError(f"The server that counts rates said nothing for {_PATIENCE_SECONDS:g} s.") from None
