"""`/llm`: quotas of models as they stand, what was spent, calls of the ledger, and budgets."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, StrictStr

from headrace.engine.llm_queries import (
    budget_document,
    budgets_now,
    list_budgets,
    list_calls,
    list_pools,
    list_spend,
    settle_dead,
)
from headrace.engine.queries import to_json
from headrace.model.api_token import Scope
from headrace.model.budget import check_scope
from headrace.model.calls import CallState
from headrace.model.durations import parse_duration
from headrace.model.errors import InvalidInputError
from headrace.model.spend import SpendGroup
from headrace.service.auth import needs
from headrace.service.paging import USUAL, Limit
from headrace.service.served import Served
from headrace.service.submitting import Duration

router = APIRouter(prefix="/llm", tags=["models"])


class SpendQuery(BaseModel):
    """What is added up; other names are refused."""

    model_config = ConfigDict(extra="forbid")

    by: SpendGroup = Field(SpendGroup.MODEL, description="by what")
    since: Duration | None = Field(None, description="only so much time, in whole days (UTC), such as `7d`")
    limit: Limit = USUAL


class CallQuery(BaseModel):
    """Which calls are listed; other names are refused."""

    model_config = ConfigDict(extra="forbid")

    state: CallState | None = None
    pool: str | None = Field(None, min_length=1, max_length=128)
    job: UUID | None = None
    limit: Limit = USUAL


class NewBudget(BaseModel):
    """Limits of a scope, one or both."""

    model_config = ConfigDict(extra="forbid")

    dollars: StrictInt | StrictFloat | StrictStr | None = Field(
        None, description="US dollars, such as 2.50; 0 stops", examples=["20"]
    )
    tokens: StrictInt | None = Field(None, description="prompts and answers together; 0 stops")


@router.get("/pools", operation_id="list_pools")
async def pools(app: Served) -> dict[str, Any]:
    """Return the quotas of models: what flows, who waits, what was refused, what was spent today (UTC)."""
    return {"pools": to_json(await list_pools(app.runtime.stores, app.settings.pools()))}


@router.get("/spend", operation_id="list_spend")
async def spend(app: Served, query: Annotated[SpendQuery, Query()]) -> dict[str, Any]:
    """Return what calls cost, dearest first: tokens, nanodollars, and what orphaned calls may have cost at most."""
    since = None if query.since is None else parse_duration(query.since, field="since")
    found = await list_spend(app.runtime.stores, query.by, since=since)
    return {"by": query.by, "spend": to_json(found[: query.limit])}


@router.get("/calls", operation_id="list_calls")
async def calls(app: Served, query: Annotated[CallQuery, Query()]) -> dict[str, Any]:
    """Return calls of the ledger, newest first. Those that ended are kept as long as answers are."""
    found = await list_calls(
        app.runtime.stores, state=query.state, pool=query.pool, job=query.job, limit=query.limit
    )  # fmt: skip
    return {"calls": to_json(found)}


@router.get("/budgets", operation_id="list_budgets")
async def budgets(app: Served) -> dict[str, Any]:
    """Return the budgets that are set, by scope: what is spent, what calls in flight may use, what is left."""
    return {"budgets": to_json([budget_document(one) for one in await list_budgets(app.runtime.stores)])}


@router.get("/budgets/{scope:path}")
async def get_budget(app: Served, scope: str) -> dict[str, Any]:
    """Return what a scope spent, and its budget; `null` where none is set."""
    return await _standing(app, check_scope(scope))


@router.put("/budgets/{scope:path}", dependencies=[needs(Scope.OPERATE)])
async def set_budget(app: Served, scope: str, body: NewBudget) -> dict[str, Any]:
    """Set a budget in the place of an earlier one; what is spent stays counted. Work that waited for it goes on."""
    if body.dollars is None and body.tokens is None:
        raise InvalidInputError("dollars", "must be given, or tokens, or both; DELETE takes the budget away", None)
    await app.budgets.set(scope, dollars=body.dollars, tokens=body.tokens)
    return await _standing(app, scope)


@router.delete("/budgets/{scope:path}", dependencies=[needs(Scope.OPERATE)])
async def remove_budget(app: Served, scope: str) -> dict[str, Any]:
    """Take a budget away: nothing bounds the scope any more. What is spent stays counted."""
    await app.budgets.remove(scope)
    return await _standing(app, scope)


async def _standing(app: Served, scope: str) -> dict[str, Any]:
    await settle_dead(app.runtime.stores)
    [found] = await budgets_now(app.runtime.stores, [scope])
    document: dict[str, Any] = to_json(budget_document(found))
    return document
