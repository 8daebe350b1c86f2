"""`/details`: batches of generated items, their events as they happen, and how batches are made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

from headrace.app import App
from headrace.apps.details.desk import Details, desk_of
from headrace.apps.details.names import ENDED, INTAKE_TASK, ITEM, feed_name
from headrace.apps.details.request import MOST_FIRST, MOST_ID, MOST_ITEMS, MOST_STYLE
from headrace.model.api_token import Scope
from headrace.model.feed import Entry
from headrace.model.names import check_key
from headrace.model.payload import encode_json
from headrace.model.places import decode_place, encode_place
from headrace.service.auth import needs
from headrace.service.details_waiting import MOST_WAIT, Switch, first_items, preferred_wait
from headrace.service.documents import Document
from headrace.service.paging import Page
from headrace.service.served import Served
from headrace.service.sse import LastSeen, Source, stream
from headrace.service.stream_shapes import DETAILS, responses_of

#: Seconds that a change of mode is waited for within one request.
MODE_WAIT = 5.0
LOCATION = "/api/v1/details/"
Key = Annotated[str | None, Header(alias="Idempotency-Key", description="the same key and body are one batch")]

_EXAMPLE = """retry: 1000

id: 1
event: accepted
data: {"type":"skill","count":1,"expected_seconds":1.2,"promised":false,"detail":"…"}

id: 2
event: item
data: {"name":"Ember Step","description":"A dash that leaves coals.","attributes":{"rank":3}}

id: 3
event: first_response
data: {"items":1,"seconds":0.9}

id: 4
event: completed
data: {"status":"completed","delivered":1,"count":1,"seconds":1.1}

"""

router = APIRouter(prefix="/details", tags=["details"])


class MakeDetails(BaseModel):
    """A batch of items to generate."""

    model_config = ConfigDict(extra="forbid")

    type: StrictStr = Field(
        pattern="^[a-z][a-z0-9_]{0,63}$", examples=["location_name"],
        description="character_name, location_name, item, skill, organization, or a word of your own",
    )  # fmt: skip
    count: StrictInt = Field(ge=1, le=MOST_ITEMS, description="10 to 50 carry the promise of time")
    style: StrictStr | None = Field(None, max_length=MOST_STYLE, description="how they are to be")
    priority: StrictInt | None = Field(None, ge=0, le=10, description="10 is the most urgent; 5 unless given")
    session_id: StrictStr | None = Field(None, min_length=1, max_length=MOST_ID, description="what they belong to")
    scope: StrictStr | None = Field(
        None, min_length=1, max_length=MOST_ID, description="names are given once in it; the session unless given"
    )
    first_response: StrictInt | None = Field(
        None, ge=1, le=MOST_FIRST, description="items that make the first response; 10 unless given"
    )
    webhook: StrictStr | None = Field(None, max_length=2_048, description="who is told of the end")


class ChangeMode(BaseModel):
    """How batches are to be made."""

    model_config = ConfigDict(extra="forbid")

    mode: Literal["normal", "single-call"]


class AcceptedDetails(Document):
    """A request that is stored."""

    batch_id: str
    correlation_id: str
    expected_seconds: float | None
    promised: bool
    detail: str
    measured: bool = Field(description="false: a slow model is assumed, for nothing was measured yet")
    existing: bool = Field(description="the key was used before: the batch was there already")
    attention: str = Field(description="what keeps the batch from being made, such as that nobody works")
    links: dict[str, str]
    items: list[dict[str, Any]] | None = Field(
        None, description="those of the first response; only with `Prefer: wait=N`, and if they came in time"
    )


class DetailsDocument(Document):
    """A batch."""

    batch_id: str
    type: str
    count: int
    status: str
    delivered: int
    attention: str = Field(description="what keeps the batch from being made; empty when it ended")
    items: list[dict[str, Any]]
    links: dict[str, str]


class DetailsPage(Document):
    """A page of batches."""

    batches: list[dict[str, Any]]
    next_cursor: str | None


class ModeDocument(Document):
    """How batches are made."""

    mode: str
    #: What this service is changing it to.
    switching_to: str | None = None
    detail: str = ""


def makes_details(app: App) -> bool:
    """Whether an app has details."""
    return desk_of(app) is not None


async def served_desk(app: Served) -> Details:
    """Return the desk of the app that is served; these routes are those of apps that have one."""
    desk = desk_of(app)
    assert desk is not None
    return desk


Desk = Annotated[Details, Depends(served_desk)]


@router.post(
    "", status_code=202, response_model=AcceptedDetails, dependencies=[needs(Scope.SUBMIT)],
    response_description="the request is stored and will be worked off; `links` say where it is followed and read",
)  # fmt: skip
async def make_details(
    desk: Desk, body: MakeDetails, key: Key = None,
    prefer: Annotated[str | None, Header(description=f"wait=N: up to {MOST_WAIT} s for the first response")] = None,
) -> Response:  # fmt: skip
    """Accept a request and answer at once, with the id of its batch and what can be expected.

    The same key with the same body gives the same batch again. With `Prefer: wait=N` the items of the first response
    are in the answer when they are there in time.
    """
    given = body.model_dump(exclude_none=True)
    accepted = await desk.submit(given, key=None if key is None else check_key("Idempotency-Key", key))
    document = accepted.to_json() | {"links": links_of(accepted.batch_id)}
    headers = {"location": f"{LOCATION}{accepted.batch_id}"}
    wait = preferred_wait(prefer)
    if wait:
        headers["preference-applied"] = f"wait={wait}"
        items = await first_items(desk.feed(accepted.batch_id), wait)
        document |= {} if items is None else {"items": [_public(item) for item in items]}
    return JSONResponse(document, 202, headers=headers)


@router.get("", response_model=DetailsPage)
async def list_details(app: Served, desk: Desk, page: Annotated[Page, Query()]) -> dict[str, Any]:
    """List batches, the newest first, without their items."""
    before = None if page.cursor is None else decode_place(page.cursor)
    # One more tells whether another page follows.
    jobs = await app.runtime.stores.inspect.list_jobs(task=INTAKE_TASK, before=before, limit=page.limit + 1)
    shown = jobs[: page.limit]
    rows = [await desk.outline(job) for job in shown]
    last = encode_place((shown[-1].created_at, shown[-1].id)) if len(jobs) > len(shown) else None
    return {"batches": rows, "next_cursor": last}


@router.get("/mode", response_model=ModeDocument, operation_id="get_details_mode")
async def get_mode(request: Request, desk: Desk) -> dict[str, Any]:
    """Return how batches that begin now are made, and to what this is being changed by this service, if it is."""
    return await _mode_document(desk, _switch(request))


@router.put(
    "/mode", response_model=ModeDocument, dependencies=[needs(Scope.OPERATE)], operation_id="change_details_mode",
    responses={202: {"model": ModeDocument, "description": "what was begun has not ended: ask again"}},
)  # fmt: skip
async def put_mode(request: Request, desk: Desk, body: ChangeMode) -> Response:
    """Change how batches are made, once all that were begun have ended; requests are accepted meanwhile.

    Answers 202 while the change goes on: the same request again waits for its end, and finishes one that was cut off.
    """
    switch = _switch(request)
    ended = await switch.make(body.mode, lambda progress: desk.set_mode(body.mode, progress), MODE_WAIT)
    return JSONResponse(await _mode_document(desk, switch), 200 if ended else 202)


@router.get("/{batch_id}", response_model=DetailsDocument)
async def get_details(desk: Desk, batch_id: str) -> dict[str, Any]:
    """Return a batch with the items that it has so far, and how it ended."""
    found = await desk.view(batch_id)
    return found | {"links": links_of(found["batch_id"])}


@router.post(
    "/{batch_id}/cancel", response_model=DetailsDocument, dependencies=[needs(Scope.OPERATE)],
    operation_id="cancel_details",
)  # fmt: skip
async def cancel_details(desk: Desk, batch_id: str) -> dict[str, Any]:
    """Cancel a batch: no more of it is made, and what it has delivered stays. One that has ended stays as it is."""
    found = await desk.cancel(batch_id)
    return found | {"links": links_of(found["batch_id"])}


@router.get(
    "/{batch_id}/events", responses=responses_of(DETAILS, _EXAMPLE), response_class=Response,
    operation_id="follow_details",
)  # fmt: skip
async def details_events(request: Request, desk: Desk, batch_id: str, after: LastSeen) -> Response:
    """Follow a batch: `accepted`, each `item` as it is written, `first_response`, and `completed`, which ends it."""
    found = await desk.find(batch_id)
    # Nothing comes of one that never began, nor again of one whose entries were removed.
    begin_by = datetime.fromisoformat(found["submitted_at"]) + desk.app.runtime.settings.recovery.keep_feeds
    source = Source(
        feed_name(found["batch_id"]), _is_last, desk.watched(batch_id), _shown, past=begin_by < datetime.now(UTC)
    )  # fmt: skip
    return await stream(source, request, after)


def links_of(batch_id: str) -> dict[str, str]:
    """Return where a batch is found.

    >>> links_of("7")["events"]
    '/api/v1/details/7/events'
    """
    return {"self": f"{LOCATION}{batch_id}", "events": f"{LOCATION}{batch_id}/events"}


def _public(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item without what only those who write it need: which part of the batch it came from."""
    return {name: value for name, value in item.items() if name != "subtask_id"}


def _shown(entry: Entry) -> Entry:
    if entry.type != ITEM:
        return entry
    return replace(entry, data=encode_json(_public(json.loads(entry.data)), field="data", most=1 << 30))


def _is_last(entry: Entry) -> bool:
    return entry.type == ENDED


def _switch(request: Request) -> Switch:
    """Return the change of mode of this service."""
    state = request.app.state
    if not hasattr(state, "details_switch"):
        state.details_switch = Switch()
    switch: Switch = state.details_switch
    return switch


async def _mode_document(desk: Details, switch: Switch) -> dict[str, Any]:
    changing = {"switching_to": switch.wanted, "detail": switch.left} if switch.runs else {}
    return {"mode": await desk.mode(), "switching_to": None, "detail": ""} | changing
