"""What pages show of a batch besides its progress: what each item is, why some failed, its results as a file."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from headrace.engine.batch_faults import batch_faults, faults_document
from headrace.engine.queries import show_batch, states_document
from headrace.model.ids import parse_id
from headrace.model.item_states import MOST_FIRST, MOST_STATES
from headrace.service.batch_files import CSV, JSON_LINES, FileType, parts_of
from headrace.service.documents import BatchFaultsDocument, BatchStatesDocument
from headrace.service.paging import USUAL, Limit
from headrace.service.served import Served

router = APIRouter(prefix="/batches", tags=["batches"])


class StateQuery(BaseModel):
    """Which items are read."""

    model_config = ConfigDict(extra="forbid")

    first: int = Field(0, ge=0, le=MOST_FIRST, description="index of the first item")
    limit: int = Field(MOST_STATES, ge=1, le=MOST_STATES, description="how many")


class FaultQuery(BaseModel):
    """How many faults are told."""

    model_config = ConfigDict(extra="forbid")

    limit: Limit = USUAL


@router.get("/{batch_id}/states", response_model=BatchStatesDocument, operation_id="read_batch_states")
async def states(app: Served, batch_id: str, which: Annotated[StateQuery, Query()]) -> dict[str, Any]:
    """Return what each item is, one letter each; an item that is run again is what its newest try is.

    `s` scheduled, `w` waiting, `r` running, `p` parked, `o` succeeded, `f` failed, `c` cancelled, `.` not there: not
    appended yet, or removed since. They end with the last item that was appended.
    """
    found = parse_id("batch id", batch_id)
    read = await app.runtime.stores.inspect.batch_states(found, first=which.first, limit=which.limit)
    return states_document(read)


@router.get("/{batch_id}/faults", response_model=BatchFaultsDocument, operation_id="read_batch_faults")
async def faults(app: Served, batch_id: str, which: Annotated[FaultQuery, Query()]) -> dict[str, Any]:
    """Return why items failed, in groups of one fingerprint, the largest first; those that are run again are left out.

    10,000 failures are looked at; `sampled` tells that there are more, of which nothing is counted.
    """
    found = parse_id("batch id", batch_id)
    return faults_document(found, await batch_faults(app.runtime.stores.inspect, found, limit=which.limit))


def _file(kind: FileType, example: str) -> dict[int | str, dict[str, Any]]:
    content = {kind.media_type: {"schema": {"type": "string"}, "example": example}}
    return {200: {"description": "the file, sent as it is read", "content": content}}


@router.get(
    "/{batch_id}/results.csv", response_class=Response, operation_id="download_batch_csv",
    responses=_file(CSV, '"index","status","result","error_kind","error_message","cost","job"'),
)  # fmt: skip
async def results_csv(app: Served, batch_id: str) -> Response:
    """Download what has ended so far as CSV, in the order in which it ended: a line per item, the result as JSON.

    Texts that a program would take as a formula begin with an apostrophe. An item that is run again has no line until
    that has ended; one that is run again meanwhile may have two, of which the last counts.
    """
    return await _download(app, batch_id, CSV)


@router.get(
    "/{batch_id}/results.jsonl", response_class=Response, operation_id="download_batch_jsonl",
    responses=_file(JSON_LINES, '{"index": 0, "status": "succeeded", "result": 1, "cost": null, "job": "…"}'),
)  # fmt: skip
async def results_jsonl(app: Served, batch_id: str) -> Response:
    """Download what has ended so far as JSON lines, in the order in which it ended: those of `headrace batch results`.

    An item that is run again has no line until that has ended; one that is run again meanwhile may have two, of which
    the last counts.
    """
    return await _download(app, batch_id, JSON_LINES)


async def _download(app: Served, batch_id: str, kind: FileType) -> Response:
    inspect, found = app.runtime.stores.inspect, parse_id("batch id", batch_id)
    await show_batch(inspect, found)
    headers = {"content-disposition": f'attachment; filename="batch-{found}.{kind.suffix}"'}
    return StreamingResponse(parts_of(inspect, found, kind), media_type=kind.media_type, headers=headers)
