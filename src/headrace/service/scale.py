"""`/scale`: how many workers queues want, for whoever starts and stops them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from headrace.engine.scaling import scale_document
from headrace.model.names import check_name
from headrace.service.served import Served
from headrace.wiring.scaling import scale_signals

router = APIRouter(prefix="/scale", tags=["queues"])


class ScaleQuery(BaseModel):
    """Which queues are told of; other names are refused."""

    model_config = ConfigDict(extra="forbid")

    queue: str | None = Field(None, description="only this one")


@router.get("", operation_id="scale_signals")
async def get_scale(app: Served, asked: Annotated[ScaleQuery, Query()]) -> dict[str, Any]:
    """Return how many workers each queue wants, why in one sentence, and the figures that this was made of."""
    queue = None if asked.queue is None else check_name("queue", asked.queue)
    return {"queues": [scale_document(signal) for signal in await scale_signals(app, queue=queue)]}
