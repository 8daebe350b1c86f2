"""`/handles` and `/resume`: what paused work waits for, and ending a wait by its token.

A token is as good as a password until it is used: it stands in an address, so that no log may have that
(`problems.shown_path`), and no answer repeats it.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from headrace.engine.events.documents import handle_document, noted_document
from headrace.model.errors import InvalidInputError, NotFoundError
from headrace.service.bodies import parse_json
from headrace.service.events import event_stores
from headrace.service.problems import RequestError
from headrace.service.served import Served

#: Bytes of what comes with a token.
MOST_BYTES = 256 << 10

router = APIRouter(tags=["handles"])


@router.get("/handles/{correlation_id:path}")
async def get_handle(app: Served, correlation_id: str) -> dict[str, Any]:
    """Return a handle, with the events that have come for it."""
    event_stores(app)
    handle = await app.handles.show(correlation_id)
    return handle_document(handle.view) | {"events": [noted_document(one) for one in await handle.events()]}


@router.post("/handles/{correlation_id:path}/cancel")
async def cancel_handle(app: Served, correlation_id: str) -> dict[str, Any]:
    """End a handle that waits, so that what waits does not go on; one that has ended stays as it is."""
    event_stores(app)
    return handle_document((await app.handles.cancel(correlation_id)).view)


@router.post("/resume/{token}")
async def resume(app: Served, token: str, request: Request) -> dict[str, Any]:
    """End a wait by its token, with any JSON, or none. The same again changes nothing; other JSON is a conflict."""
    event_stores(app)
    body = await request.body()
    if len(body) > MOST_BYTES:
        fix = "store the data elsewhere and pass a reference to it"
        raise RequestError(413, "payload_too_large", f"what comes with a token must be at most 256 KiB: {fix}")
    try:
        handle = await app.handles.resolve(token, parse_json(body))
    except InvalidInputError as error:
        if error.field != "token":
            raise
        raise NotFoundError("no handle has this token: it was never given out, or its handle was removed") from None
    return {"state": handle.state, "correlation_id": handle.correlation_id}
