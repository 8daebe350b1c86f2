"""`/events`: the log of events, and how full the outbox is."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, StrictInt

from headrace.engine.events.documents import event_document, parked_document, stats_document
from headrace.engine.queries import to_json
from headrace.model.api_token import Scope
from headrace.model.errors import ConfigError, NotFoundError
from headrace.ports.message_log import MessageLog
from headrace.ports.stores import EventStores
from headrace.service.auth import needs
from headrace.service.paging import USUAL, Limit
from headrace.service.problems import RequestError
from headrace.service.served import Served

router = APIRouter(prefix="/events", tags=["events"])


class EventPage(BaseModel):
    """Which events are listed; other names are refused."""

    model_config = ConfigDict(extra="forbid")

    correlation_id: str | None = Field(None, min_length=1, max_length=255)
    aggregate_id: str | None = Field(None, min_length=1, max_length=255)
    after: UUID | None = Field(None, description="those behind the event with this id: `next_after` of the page before")
    limit: Limit = USUAL


@router.get("")
async def list_events(app: Served, page: Annotated[EventPage, Query()]) -> dict[str, Any]:
    """List events of the log as they were inserted, also those that have left."""
    # One more tells whether another page follows.
    found = await event_stores(app).outbox.list_events(
        correlation_id=page.correlation_id, aggregate_id=page.aggregate_id,
        after="" if page.after is None else str(page.after), limit=page.limit + 1,
    )  # fmt: skip
    shown = found[: page.limit]
    last = shown[-1].id if len(found) > len(shown) else None
    return {"events": [event_document(event) for event in shown], "next_after": last}


@router.get("/outbox", operation_id="get_outbox")
async def outbox(app: Served) -> dict[str, Any]:
    """Return how many rows wait in the outbox, are held behind a parked one, and are parked."""
    return stats_document(await event_stores(app).outbox.outbox_stats())


class ParkedPage(BaseModel):
    """How many parked rows are listed; other names are refused."""

    model_config = ConfigDict(extra="forbid")

    limit: Limit = USUAL


@router.get("/parked", operation_id="list_parked_events")
async def list_parked(app: Served, page: Annotated[ParkedPage, Query()]) -> dict[str, Any]:
    """List rows of the outbox that the bus will never take, with the reason, the oldest first."""
    found = await event_stores(app).outbox.list_parked(limit=page.limit)
    return {"parked": [parked_document(one) for one in found]}


class Positions(BaseModel):
    """Which parked rows."""

    model_config = ConfigDict(extra="forbid")

    positions: list[Annotated[StrictInt, Field(ge=1, lt=2**63)]] = Field(min_length=1, max_length=1_000)


@router.post("/parked/release", dependencies=[needs(Scope.OPERATE)])
async def release_events(app: Served, body: Positions) -> dict[str, Any]:
    """Let parked rows be tried again, at their place; those behind them follow."""
    return {"released": await _settle(app, body.positions, drop=False)}


@router.post("/parked/drop", dependencies=[needs(Scope.OPERATE)])
async def drop_events(app: Served, body: Positions) -> dict[str, Any]:
    """Take parked rows out of the outbox: they never leave, and stay in the log of events; those behind them go on."""
    return {"dropped": await _settle(app, body.positions, drop=True)}


async def _settle(app: Served, positions: list[int], *, drop: bool) -> list[int]:
    done = await event_stores(app).outbox.release_parked(positions, drop=drop)
    if not done:
        raise NotFoundError(f"nothing is parked at {', '.join(map(str, positions[:10]))}")
    return done


@router.get("/groups", operation_id="list_event_groups")
async def list_groups(app: Served) -> dict[str, Any]:
    """Return the groups that read the store's bus: live members, how many messages they are behind, when last seen."""
    return {"groups": to_json(await _log(app).log_groups())}


@router.delete("/groups/{group:path}", dependencies=[needs(Scope.OPERATE)])
async def forget_group(app: Served, group: str) -> dict[str, Any]:
    """Forget how far a group without live members is: one that joins by its name later begins at what is kept."""
    if not await _log(app).forget_group(group):
        raise NotFoundError(f"there is no group {group[:200]!r}")
    return {"forgotten": group}


def _log(app: Served) -> MessageLog:
    """Return the log of messages where it is the bus. Raises RequestError 501."""
    stores = event_stores(app)
    if app.settings.events.bus != "store":
        raise RequestError(501, ConfigError.code, "the groups of Kafka are known to Kafka alone: ask its own tools")
    return stores.log


def event_stores(app: Served) -> EventStores:
    """Return what the store has for events. Raises RequestError 501 where it has nothing."""
    try:
        return app.event_stores
    except ConfigError as error:
        raise RequestError(501, error.code, str(error)) from None
