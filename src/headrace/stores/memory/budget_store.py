"""Budgets and the reports over the ledger, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from uuid import UUID

from headrace.model.budget import Budget, BudgetView
from headrace.model.calls import CallState, CallView
from headrace.model.spend import SpendGroup, SpendRow
from headrace.stores.memory.ledger import Call, day_of
from headrace.stores.memory.spending import sum_spend, view_budget
from headrace.stores.memory.state import State, atomic


class MemoryBudgetStore:
    """`ports.budget_store.BudgetStore` over shared dicts; the port says what each verb promises."""

    def __init__(self, state: State) -> None:
        self._state = state

    @atomic
    async def set_budget(self, scope: str, budget: Budget | None) -> None:
        """Set or remove a scope's budget."""
        if budget is None:
            self._state.ledger.budgets.pop(scope, None)
        else:
            self._state.ledger.budgets[scope] = budget

    @atomic
    async def list_budgets(self, scopes: Sequence[str] | None = None) -> list[BudgetView]:
        """Return budgets as they stand."""
        ledger, today = self._state.ledger, day_of(self._state.now())
        chosen = ledger.budgets if scopes is None else scopes
        return [view_budget(ledger, scope, today) for scope in sorted(set(chosen))]

    @atomic
    async def list_spend(self, by: SpendGroup, *, since: date | None = None, limit: int = 1_000) -> list[SpendRow]:
        """Return what was spent, added up."""
        return sum_spend(self._state.ledger, by, since)[:limit]

    @atomic
    async def list_calls(
        self, *, state: CallState | None = None, pool: str | None = None, job: UUID | None = None, limit: int = 100
    ) -> list[CallView]:
        """Return calls of the ledger, newest first."""
        calls = (
            call
            for call in self._state.ledger.calls.values()
            if state in (None, call.state) and pool in (None, call.new.pool) and job in (None, call.new.origin.job_id)
        )
        ordered = sorted(calls, key=lambda call: (call.opened_at, call.new.id), reverse=True)
        return [_view(call) for call in ordered[:limit]]


def _view(call: Call) -> CallView:
    new = call.new
    return CallView(
        id=new.id,
        key=new.key,
        state=call.state,
        pool=new.pool,
        provider=new.provider,
        model=new.model,
        purpose=new.purpose,
        origin=new.origin,
        estimate=new.estimate,
        usage=call.usage,
        priced_by=call.priced_by,
        error=call.error,
        request_id=call.request_id,
        opened_at=call.opened_at,
        ended_at=call.ended_at,
    )
