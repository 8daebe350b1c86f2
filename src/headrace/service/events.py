"""`/events`: the log of events, and how full the outbox is."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from headrace.engine.events.documents import event_document, parked_document, stats_document
from headrace.model.errors import ConfigError
from headrace.ports.stores import EventStores
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


def event_stores(app: Served) -> EventStores:
    """Return what the store has for events. Raises RequestError 501 where it has nothing."""
    try:
        return app.event_stores
    except ConfigError as error:
        raise RequestError(501, error.code, str(error)) from None
