"""`/workflows`: definitions that are stored, and whether they may be started."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from headrace.engine.queries import to_json
from headrace.engine.workflows.documents import workflow_document
from headrace.model.api_token import Scope
from headrace.model.errors import NotFoundError
from headrace.model.names import check_name
from headrace.service.auth import needs
from headrace.service.paging import Page
from headrace.service.served import Served

#: Versions are numbers of 32 bits in every store.
MOST_VERSION = 2**31 - 1

router = APIRouter(prefix="/workflows", tags=["workflows"])


@router.get("")
async def list_workflows(app: Served, page: Annotated[Page, Query()]) -> dict[str, Any]:
    """List the latest version of every workflow by name, without its graph."""
    if page.cursor is not None:
        check_name("cursor", page.cursor)
    # One more tells whether another page follows.
    found = await app.runtime.stores.workflows.page_workflows(after=page.cursor or "", limit=page.limit + 1)
    shown = found[: page.limit]
    return {"workflows": to_json(shown), "next_cursor": shown[-1].name if len(found) > len(shown) else None}


@router.get("/{name}")
async def get_workflow(
    app: Served, name: str, version: Annotated[int | None, Query(ge=1, le=MOST_VERSION)] = None
) -> dict[str, Any]:
    """Return a version of a workflow, the latest unless another is asked for, with its graph in the JSON form."""
    found = await app.runtime.stores.workflows.get_workflow(name, version)
    if found is None:
        which = f"workflow {name!r}" if version is None else f"version {version} of workflow {name!r}"
        raise NotFoundError(f"no {which} is stored; GET /api/v1/workflows lists those there are")
    return workflow_document(found)


@router.post("/{name}/activate", dependencies=[needs(Scope.OPERATE)])
async def activate(app: Served, name: str) -> dict[str, Any]:
    """Let runs of a workflow be started again."""
    return await _set_active(app, name, active=True)


@router.post("/{name}/deactivate", dependencies=[needs(Scope.OPERATE)])
async def deactivate(app: Served, name: str) -> dict[str, Any]:
    """Let no run of a workflow be started any more, whatever its version; those that run go on."""
    return await _set_active(app, name, active=False)


async def _set_active(app: Served, name: str, *, active: bool) -> dict[str, Any]:
    await app.runtime.stores.workflows.set_workflow_active(name, active=active)
    return {"workflow": name, "active": active}
