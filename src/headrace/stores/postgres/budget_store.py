"""Budgets and the reports over the ledger, in PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from uuid import UUID

from headrace.model.budget import Budget, BudgetView
from headrace.model.calls import CallState, CallView, Origin, Purpose
from headrace.model.quota import Estimate
from headrace.model.spend import SpendGroup, SpendRow
from headrace.model.usage import Usage
from headrace.stores.postgres.database import Database, Row


class PostgresBudgetStore:
    """`ports.budget_store.BudgetStore`; each verb is one statement."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def set_budget(self, scope: str, budget: Budget | None) -> None:
        """Set or remove a scope's budget."""
        if budget is None:
            await self._database.fetch("forget_budget", scope=scope)
        else:
            await self._database.fetch("set_budget", scope=scope, cost_nano=budget.cost_nano, tokens=budget.tokens)

    async def list_budgets(self, scopes: Sequence[str] | None = None) -> list[BudgetView]:
        """Return budgets as they stand."""
        chosen = None if scopes is None else list(scopes)
        return [_budget_view(row) for row in await self._database.fetch("list_budgets", scopes=chosen)]

    async def list_spend(self, by: SpendGroup, *, since: date | None = None, limit: int = 1_000) -> list[SpendRow]:
        """Return what was spent, added up."""
        # Scopes of a kind lie between "kind:" and the character that follows; the day is a scope of its own.
        first, last = ("day", "day ") if by is SpendGroup.DAY else (f"{by}:", f"{by};")
        rows = await self._database.fetch("list_spend", kind=by, first=first, last=last, since=since, limit=limit)
        return [_spend_row(row) for row in rows]

    async def list_calls(
        self, *, state: CallState | None = None, pool: str | None = None, job: UUID | None = None, limit: int = 100
    ) -> list[CallView]:
        """Return calls of the ledger, newest first."""
        if job is None:
            rows = await self._database.fetch("list_calls", state=state, pool=pool, limit=limit)
        else:
            rows = await self._database.fetch("list_calls_of_job", job=job, state=state, pool=pool, limit=limit)
        return [_call_view(row) for row in rows]


def _budget_view(row: Row) -> BudgetView:
    return BudgetView(
        scope=row["scope"],
        budget=Budget(row["cost_limit"], row["tokens_limit"]) if row["is_set"] else None,
        cost_nano=row["nano"],
        tokens=row["tokens"],
        reserved_nano=row["reserved_nano"],
        reserved_tokens=row["reserved_tokens"],
        unpriced=row["unpriced"],
    )


def _usage(row: Row) -> Usage:
    return Usage(
        input_tokens=row["input_tokens"],
        output_tokens=row["output_tokens"],
        calls=row["answered"],
        cached_tokens=row["cached_tokens"],
        cost_nano=row["cost_nano"],
        unpriced=row["unpriced"],
    )


def _spend_row(row: Row) -> SpendRow:
    return SpendRow(
        name=row["name"],
        usage=_usage(row),
        in_flight=row["in_flight"],
        orphaned=row["orphaned"],
        orphaned_nano=row["lost_nano"],
        orphaned_unpriced=row["lost_unpriced"],
        errors=json.loads(row["errors"] or "{}"),
    )


def _call_view(row: Row) -> CallView:
    return CallView(
        id=row["id"],
        key=row["key"],
        state=CallState(row["state"]),
        pool=row["pool"],
        provider=row["provider"],
        model=row["model"],
        purpose=Purpose(row["purpose"]),
        origin=Origin(row["job_id"], row["batch_id"], row["run_id"], row["tenant"]),
        estimate=Estimate(row["prompt_tokens"], row["most_tokens"], row["most_nano"]),
        usage=_usage(row),
        priced_by=row["priced_by"],
        error=row["error"],
        request_id=row["request_id"],
        opened_at=row["opened_at"],
        ended_at=row["ended_at"],
    )
