"""`/limits`: caps, rates, breakers and shares as they stand, and what operators change of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt

from headrace import limit_changes
from headrace.engine.queries import to_json
from headrace.model.api_token import Scope
from headrace.model.breaker import BreakerState
from headrace.model.limits import Rate
from headrace.service.auth import needs
from headrace.service.paging import MOST, USUAL
from headrace.service.served import Served

router = APIRouter(prefix="/limits", tags=["limits"])
_OPERATES = [needs(Scope.OPERATE)]
_FORCING = "; `force` sets it all the same"


class LimitsQuery(BaseModel):
    """What of limits is told; other names are refused."""

    model_config = ConfigDict(extra="forbid")

    internal: bool = Field(default=False, description="also the buckets that count calls of models")
    shares: int = Field(default=USUAL, ge=0, le=MOST, description="how many weights of fair keys, by queue and key")


class Forced(BaseModel):
    """What every change may have."""

    model_config = ConfigDict(extra="forbid")

    force: StrictBool = Field(default=False, description="also a name that nothing uses yet")


class NewCap(Forced):
    """How many jobs run at once."""

    cap: StrictInt = Field(ge=0, le=1_000_000, description="0 lets none start")


class NewRate(Forced):
    """What passes a rate limit."""

    rate: str = Field(max_length=40, description="units per s, m, h or d", examples=["60/m"])
    burst: StrictInt | StrictFloat | None = Field(
        default=None, description="units at once after a pause; one second's worth, at least 1, unless given"
    )


class NewWeight(Forced):
    """The share of a fair key."""

    weight: StrictInt | StrictFloat = Field(description="0.001 to 1,000; twice the weight is twice the share")


@router.get("", operation_id="list_limits")
async def list_limits(app: Served, asked: Annotated[LimitsQuery, Query()]) -> dict[str, Any]:
    """Return caps with what runs, rates with what is left, breakers, and weights of fair keys."""
    view, now = await limit_changes.read_limits(app, internal=asked.internal, most_shares=asked.shares)
    document: dict[str, Any] = to_json(limit_changes.limits_document(view, now))
    return document


@router.put("/caps/{name:path}", dependencies=_OPERATES)
async def set_cap(app: Served, name: str, body: NewCap) -> dict[str, Any]:
    """Let so many jobs run at once under `task:NAME`, `queue:NAME` or `key:QUEUE:KEY`, for running workers too."""
    only = await limit_changes.set_cap(app, name, body.cap, force=body.force, forcing=_FORCING)
    return {"cap": name, "set": body.cap, "note": only.removeprefix("; ") or None}


@router.put("/rates/{name:path}", dependencies=_OPERATES)
async def set_rate(app: Served, name: str, body: NewRate) -> dict[str, Any]:
    """Let so many units pass a rate limit; NAME is that of a `Limit`, or `task:NAME` or `queue:NAME`."""
    rate = Rate.parse(body.rate, burst=body.burst)
    only = await limit_changes.set_rate(app, name, rate, force=body.force, forcing=_FORCING)
    return {"rate": name, "set": to_json(rate), "note": only.removeprefix("; ") or None}


@router.put("/weights/{queue}/{fair_key:path}", dependencies=_OPERATES)
async def set_weight(app: Served, queue: str, fair_key: str, body: NewWeight) -> dict[str, Any]:
    """Set the weight of a fair key in a queue; it is 1 unless set, and acts with the next job that starts."""
    await limit_changes.set_weight(app, queue, fair_key, body.weight, force=body.force)
    return {"queue": queue, "fair_key": fair_key, "weight": body.weight}


@router.post("/breakers/{name}/{change}", dependencies=_OPERATES)
async def set_breaker(app: Served, name: str, change: Literal["open", "close"]) -> dict[str, Any]:
    """Open a circuit breaker by hand, for its cooldown, or close it."""
    state = BreakerState.OPEN if change == "open" else BreakerState.CLOSED
    await limit_changes.set_breaker(app, name, state)
    return {"breaker": name, "state": state}


@router.post("/{name:path}/reset", dependencies=_OPERATES)
async def reset_limit(app: Served, name: str) -> dict[str, Any]:
    """Return to what is declared for a cap or rate limit of this name; a rate limit that is closed is opened."""
    closing = f"POST /limits/breakers/{name}/close"
    declared = await limit_changes.reset(app, name, closing=closing)
    return {"reset": name, "kinds": list(declared), "declared": to_json(declared)}


@router.delete("/{name:path}", dependencies=_OPERATES)
async def forget_limit(app: Served, name: str) -> dict[str, Any]:
    """Remove the cap, the rate limit and the breaker of this name, with what was set for them.

    Jobs that wait behind it are no longer limited by it; a worker that still declares it does so at its next start.
    """
    return {"forgotten": name, "kinds": await limit_changes.forget(app, name)}
