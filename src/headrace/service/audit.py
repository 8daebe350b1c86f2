"""`/audit`: who did what, and when."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from headrace.engine.audit import action_document
from headrace.model.api_token import Scope
from headrace.model.places import decode_place, encode_place
from headrace.service.auth import needs
from headrace.service.paging import Page
from headrace.service.served import Served

router = APIRouter(prefix="/audit", tags=["audit"])


class ActionPage(Page):
    """Which actions are listed."""

    who: str | None = Field(None, min_length=1, max_length=500, description="name of a token, or such as `local`")
    operation: str | None = Field(None, min_length=1, max_length=100, description="such as `cancel_job`")


@router.get("", dependencies=[needs(Scope.OPERATE)])
async def list_actions(app: Served, page: Annotated[ActionPage, Query()]) -> dict[str, Any]:
    """Return actions, newest first: who did what to what, and what was answered.

    An action is there within a second of its answer. `[service] audit` says which are noted.
    """
    before = None if page.cursor is None else decode_place(page.cursor)
    # One more tells whether another page follows.
    found = await app.runtime.stores.audit.list_actions(
        before=before, limit=page.limit + 1, who=page.who, operation=page.operation
    )
    shown = found[: page.limit]
    last = encode_place(shown[-1].place) if len(found) > len(shown) else None
    return {"actions": [action_document(action) for action in shown], "next_cursor": last}
