"""`/signals`: what wakes nodes and jobs that wait."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body

from headrace.model.api_token import Scope
from headrace.model.errors import ConflictError
from headrace.service.auth import needs
from headrace.service.served import Served

router = APIRouter(prefix="/signals", tags=["signals"])


@router.post("/{key:path}", dependencies=[needs(Scope.SUBMIT)])
async def send_signal(app: Served, key: str, payload: Annotated[Any, Body()] = None) -> dict[str, Any]:
    """Send a signal with any JSON, or none: what waits for its key runs on, now or when it comes to wait.

    A key has its signal once: a second one changes nothing, and is a conflict.
    """
    if not await app.signal(key, payload):
        raise ConflictError(f"the signal {key!r} was sent before; the first one stands, so this one changed nothing")
    return {"key": key, "sent": True}
