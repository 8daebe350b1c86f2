"""`/workers`: who works, on what, and whether it is well."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from headrace.engine.worker_queries import list_workers, worker_document
from headrace.service.paging import USUAL, Limit
from headrace.service.served import Served

router = APIRouter(prefix="/workers", tags=["workers"])


class WorkerQuery(BaseModel):
    """Which workers are listed; other names are refused."""

    model_config = ConfigDict(extra="forbid")

    all: bool = Field(False, description="also those that ended")
    limit: Limit = USUAL


@router.get("", operation_id="list_workers")
async def workers(app: Served, page: Annotated[WorkerQuery, Query()]) -> dict[str, Any]:
    """Return the workers that are alive, with their queues, what they run and their last heartbeat."""
    now, found = await list_workers(app.runtime.stores, everyone=page.all)
    shown = found[: page.limit]
    return {"workers": [worker_document(one, now) for one in shown], "left_out": len(found) - len(shown)}
