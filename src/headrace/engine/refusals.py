"""What budgets had no room for, as one process met it: the store records no call that it refuses."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from headrace.model.calls import NewCall, Opening, Settlement, SpooledPart, Verdict
from headrace.model.llm import StoredAnswer
from headrace.model.quota import Estimate
from headrace.ports.call_store import CallStore

#: Under this name a session tells of it.
REFUSALS = "headrace.llm.over_budget"
#: What waits for a budget looks again within 39 s; a refusal that is older was of something that gave up.
RECENT_SECONDS = 60.0
#: Most scopes that are told, the newest.
_MOST = 100


@dataclass(frozen=True, slots=True)
class Refusal:
    """The call that a budget had no room for last: what it may use at most."""

    tokens: int
    #: nanodollars; None: its price is not known
    cost_nano: int | None

    def fits(self, *, tokens: int | None, cost_nano: int | None) -> bool:
        """Whether there is room for it in what is left; None: no limit.

        >>> Refusal(tokens=40, cost_nano=None).fits(tokens=30, cost_nano=None)
        False
        """
        return (tokens is None or self.tokens <= tokens) and (cost_nano is None or (self.cost_nano or 0) <= cost_nano)


class WatchedCalls:
    """A `ports.call_store.CallStore` that keeps in mind, by scope, what `inner` refused over a budget last."""

    def __init__(self, inner: CallStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._inner, self._clock = inner, clock
        self._last: dict[str, tuple[float, Estimate]] = {}

    async def open_calls(self, session: UUID, calls: Sequence[NewCall]) -> list[Opening]:
        """Open calls; see the port."""
        openings = await self._inner.open_calls(session, calls)
        for call, opening in zip(calls, openings, strict=True):
            if opening.verdict is Verdict.OVER_BUDGET and opening.scope is not None:
                # Put behind the others: the oldest are the first.
                self._last.pop(opening.scope, None)
                self._last[opening.scope] = (self._clock(), call.estimate)
                if len(self._last) > _MOST:
                    del self._last[next(iter(self._last))]
        return openings

    async def send_calls(self, calls: Sequence[UUID]) -> frozenset[UUID]:
        """Record calls as sent; see the port."""
        return await self._inner.send_calls(calls)

    async def spool_items(self, parts: Sequence[SpooledPart]) -> None:
        """Store parts of answers; see the port."""
        await self._inner.spool_items(parts)

    async def settle_calls(self, settlements: Sequence[Settlement]) -> list[StoredAnswer | None]:
        """Record how calls ended; see the port."""
        return await self._inner.settle_calls(settlements)

    async def reap_calls(self, *, limit: int) -> int:
        """End calls of dead sessions; see the port."""
        return await self._inner.reap_calls(limit=limit)

    def told(self) -> dict[str, Any]:
        """Return what was refused lately as JSON-able values: what the process's session tells with each heartbeat."""
        since = self._clock() - RECENT_SECONDS
        self._last = {scope: last for scope, last in self._last.items() if last[0] >= since}
        return {
            REFUSALS: {
                scope: {"tokens": asked.tokens, "cost_nano": asked.cost_nano}
                for scope, (_, asked) in self._last.items()
            }
        }
