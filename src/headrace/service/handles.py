"""`/handles` and `/resume`: what paused work waits for, and ending a wait by its token.

A token is as good as a password until it is used: it stands in an address, so that no log may have that
(`problems.shown_path`), and no answer repeats it.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from headrace.engine.events.documents import handle_document, noted_document
from headrace.model.api_token import Scope
from headrace.model.errors import InvalidInputError, NotFoundError
from headrace.service.auth import NEEDS_HANDLE, caller_of, needs, unauthorized
from headrace.service.bodies import parse_json
from headrace.service.events import event_stores
from headrace.service.paging import USUAL, Limit
from headrace.service.served import Served

router = APIRouter(tags=["handles"])


class HandlePage(BaseModel):
    """Which handles are listed; other names are refused."""

    model_config = ConfigDict(extra="forbid")

    waiting: bool = Field(True, description="only those that wait; false: also those that have ended")
    limit: Limit = USUAL


@router.get("/handles")
async def list_handles(app: Served, page: Annotated[HandlePage, Query()]) -> dict[str, Any]:
    """List handles that wait, the newest first; with `waiting=false` also those that have ended."""
    event_stores(app)
    found = await app.handles.list(waiting=page.waiting, limit=page.limit)
    return {"handles": [handle_document(handle.view) for handle in found]}


@router.get("/handles/{correlation_id:path}")
async def get_handle(app: Served, correlation_id: str) -> dict[str, Any]:
    """Return a handle, with the events that have come for it."""
    event_stores(app)
    handle = await app.handles.show(correlation_id)
    return handle_document(handle.view) | {"events": [noted_document(one) for one in await handle.events()]}


@router.post("/handles/{correlation_id:path}/cancel", dependencies=[needs(Scope.OPERATE)])
async def cancel_handle(app: Served, correlation_id: str) -> dict[str, Any]:
    """End a handle that waits, so that what waits does not go on; one that has ended stays as it is."""
    event_stores(app)
    return handle_document((await app.handles.cancel(correlation_id)).view)


@router.post("/resume/{token}", dependencies=[needs(Scope.SUBMIT, own=True)])
async def resume(app: Served, token: str, request: Request) -> dict[str, Any]:
    """End a wait by its token, with any JSON, or none. The same again changes nothing; other JSON is a conflict."""
    caller = caller_of(request)
    event_stores(app)
    body = await request.body()
    try:
        handle = await app.handles.resolve(token, parse_json(body))
    except InvalidInputError as error:
        if error.field != "token":
            raise
        if not caller.admitted:
            # Of 256 bits nobody guesses any: there is nothing to count.
            raise unauthorized(NEEDS_HANDLE) from None
        raise NotFoundError("no handle has this token: it was never given out, or its handle was removed") from None
    return {"state": handle.state, "correlation_id": handle.correlation_id}
