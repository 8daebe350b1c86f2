"""Budgets and the reports over the ledger, on Redis."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from uuid import UUID

from headrace.model.budget import Budget, BudgetView
from headrace.model.calls import LIVE, CallState, CallView
from headrace.model.spend import SpendGroup, SpendRow
from headrace.stores.redis.ledger_rows import SpendSums, budget_view, call_view, day_number
from headrace.stores.redis.namespace import Namespace
from headrace.stores.redis.views import fields

#: What one script reads: scopes, sums, calls with all they hold, and calls in flight of which little is asked.
SCOPES, SUMS, CALLS, FLYING = 200, 200, 500, 2_000


class RedisBudgetStore:
    """`ports.budget_store.BudgetStore`; what is long is read in parts, newest first."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    async def set_budget(self, scope: str, budget: Budget | None) -> None:
        """Set or remove a scope's budget."""
        limits = {} if budget is None else {"cost": budget.cost_nano, "tokens": budget.tokens}
        words = [word for name, limit in limits.items() if limit is not None for word in (name, limit)]
        await self._namespace.run("set_budget", scope, int(budget is not None), *words)

    async def list_budgets(self, scopes: Sequence[str] | None = None) -> list[BudgetView]:
        """Return budgets as they stand."""
        if scopes is None:
            return await self._all_budgets()
        chosen, views = sorted(set(scopes)), list[BudgetView]()
        for start in range(0, len(chosen), SCOPES):
            rows = await self._namespace.run("list_budgets", 1, *chosen[start : start + SCOPES])
            views += map(budget_view, rows)
        return views

    async def _all_budgets(self) -> list[BudgetView]:
        views: list[BudgetView] = []
        while True:
            behind = views[-1].scope if views else ""
            rows = await self._namespace.run("list_budgets", 0, behind, SCOPES)
            views += map(budget_view, rows)
            if len(rows) < SCOPES:
                return views

    async def list_spend(self, by: SpendGroup, *, since: date | None = None, limit: int = 1_000) -> list[SpendRow]:
        """Return what was spent, added up."""
        gathered = SpendSums(by)
        first = 0 if since is None else day_number(since)
        sums = calls = 0
        while True:
            rows, seen, live = await self._namespace.run("list_spend", by, first, sums, SUMS, calls, FLYING)
            for day, scope, row in rows:
                gathered.add_sum(day, scope, fields(row))
            for name, count in zip(live[::2], live[1::2], strict=True):
                gathered.add_live(name, count)
            sums, calls = sums + len(rows), calls + seen
            if len(rows) < SUMS and seen < FLYING:
                return gathered.rows()[:limit]

    async def list_calls(
        self, *, state: CallState | None = None, pool: str | None = None, job: UUID | None = None, limit: int = 100
    ) -> list[CallView]:
        """Return calls of the ledger, newest first."""
        found: dict[str, CallView] = {}
        wanted = (_where(state, pool, job), "" if state is None else state.value, pool or "")
        place = 0
        while len(found) < limit:
            page = CALLS if any(wanted[1:]) else min(limit, CALLS)
            seen, rows = await self._namespace.run("list_calls", *wanted, place, page)
            found |= {call_id: call_view(call_id, fields(row)) for call_id, row in rows}
            place += seen
            if seen < page:
                break
        return list(found.values())[:limit]


def _where(state: CallState | None, pool: str | None, job: UUID | None) -> str:
    """Return the shortest list that has all calls in a state, of a pool, of a job."""
    if job is not None:
        return f"calls_of:{job.hex}"
    if state in LIVE:
        return "live" if pool is None else f"live:{pool}"
    return "orphans" if state is CallState.ORPHANED else "calls"
