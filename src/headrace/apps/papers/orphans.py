"""Calls of a run that were sent and whose answer nobody saw, as after a kill: they may have been paid for nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from typing import Any

from headrace import App, Batch
from headrace.model.spend import SpendGroup

#: Calls of dead processes that are ended in one step.
_REAPED = 1_000
#: Batches that are looked through, the dearest first.
_MOST_BATCHES = 100_000


@dataclass(frozen=True, slots=True)
class Orphans:
    """How many, and what they may have cost at most."""

    calls: int = 0
    #: 1e-9 US dollars, of the calls with a known price
    cost_nano: int = 0
    #: calls whose price nobody knows; with one of them the bound is unknown
    unpriced: int = 0

    @property
    def dollars(self) -> float | None:
        """The upper bound in US dollars; None where the price of a call is not known.

        >>> Orphans(2, 3_000_000).dollars, Orphans(2, 3_000_000, unpriced=1).dollars
        (0.003, None)
        """
        return None if self.unpriced else self.cost_nano / 1e9

    def to_json(self) -> dict[str, Any]:
        """A JSON-able mapping; an unknown bound is `unknown`, never 0."""
        return {
            "calls": self.calls,
            "usd_at_most": "unknown" if self.dollars is None else self.dollars,
            "usd_known_at_most": self.cost_nano / 1e9,
            "unpriced_calls": self.unpriced,
        }


async def find_orphans(app: App, batch: Batch) -> Orphans:
    """What the ledger of calls knows of a batch, the calls of processes that died included.

    Raises StoreUnavailableError, NotFoundError.
    """
    stores, began = app.runtime.stores, (await batch.view()).created_at
    while await stores.calls.reap_calls(limit=_REAPED) >= _REAPED:
        pass
    rows = await stores.budgets.list_spend(SpendGroup.BATCH, since=began.astimezone(UTC).date(), limit=_MOST_BATCHES)
    for row in rows:
        if row.name == str(batch.id):
            return Orphans(row.orphaned, row.orphaned_nano, row.orphaned_unpriced)
    return Orphans()
