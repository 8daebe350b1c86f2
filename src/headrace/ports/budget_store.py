"""The budget store port: what scopes may spend, and what they and everybody else spent."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Protocol
from uuid import UUID

from headrace.model.budget import Budget, BudgetView
from headrace.model.calls import CallState, CallView
from headrace.model.spend import SpendGroup, SpendRow


class BudgetStore(Protocol):
    """Budgets and the reports over the ledger. All methods raise StoreUnavailableError."""

    async def set_budget(self, scope: str, budget: Budget | None) -> None:
        """Set a scope's budget in the place of an earlier one; None removes it. What is spent stays counted."""
        ...

    async def list_budgets(self, scopes: Sequence[str] | None = None) -> list[BudgetView]:
        """Return budgets as they stand, by scope; with `scopes` those, also where none is set or nothing was spent.

        Of the scope "day" what counts is today's, by the store's clock: of calls that were opened today.
        """
        ...

    async def list_spend(self, by: SpendGroup, *, since: date | None = None, limit: int = 1_000) -> list[SpendRow]:
        """Return what was spent by calls opened from a day on (UTC; None: all that is kept).

        Dearest first, orphaned calls counted with what they may have cost at most, then by name. Sums are kept longer
        than the calls: `model/spend.py`.
        """
        ...

    async def list_calls(
        self, *, state: CallState | None = None, pool: str | None = None, job: UUID | None = None, limit: int = 100
    ) -> list[CallView]:
        """Return calls of the ledger, newest first: those in a state, of a pool, of a job, or all.

        Calls that ended are kept as long as answers are.
        """
        ...
