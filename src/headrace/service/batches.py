"""`/batches`: submitting many calls of one task together, following them, reading what came of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, cast

from fastapi import APIRouter, Query, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt

from headrace.app import App
from headrace.engine.queries import batch_document, item_document, show_batch, to_json
from headrace.model.api_token import Scope
from headrace.model.batch import MAX_ATOMIC_ITEMS, BatchItem, BatchState, ClosePolicy
from headrace.model.errors import InvalidInputError
from headrace.model.ids import parse_id
from headrace.model.places import decode_place, encode_place
from headrace.service.auth import needs
from headrace.service.documents import BatchDocument, BatchPage, ResultPage, SubmittedBatch
from headrace.service.paging import USUAL, Limit, Page
from headrace.service.problems import InvalidItemsError, RequestError
from headrace.service.served import Served
from headrace.service.submitting import IdempotencyKey, JobOptions, check_queue, options_of, task_of
from headrace.tasks import SubmitOptions, Task, new_batch

LOCATION = "/api/v1/batches/"
#: Faults of items that one answer names.
MOST_FAULTS = 20
#: A page of results ends after so many characters.
MOST_PAGE = 4 << 20

router = APIRouter(prefix="/batches", tags=["batches"])


class SubmitBatch(JobOptions):
    """Calls of one task, one per item."""

    task: str = Field(description="name of a task of the app that is served", examples=["summarise"])
    items: list[Any] = Field(
        description="one argument each, or with `spread` an object of keyword arguments each",
        examples=[["a text", "another text"]], json_schema_extra={"maxItems": MAX_ATOMIC_ITEMS},
    )  # fmt: skip
    spread: StrictBool = False
    on_close: str | None = Field(None, description="a task that is called with the batch's id when it is closed")
    webhook: str | None = Field(
        None, max_length=2048, description="URL that is sent `batch.closed`, signed; it cannot go with `on_close`"
    )
    max_failed: StrictInt | None = Field(
        None, ge=0, le=MAX_ATOMIC_ITEMS, description="more failed items than this fail the batch; left out: none do"
    )


@router.post(
    "", dependencies=[needs(Scope.SUBMIT)], status_code=201, response_model=SubmittedBatch,
    responses={200: {"model": SubmittedBatch, "description": "the key was used before for the same: its batch"}},
)  # fmt: skip
async def submit_batch(app: Served, body: SubmitBatch, key: IdempotencyKey = None) -> Response:
    """Make one durable job per item, all or none, and return the batch once it is stored.

    The same key with the same task, items and options, but for `run_at` and `delay`, gives the batch that was made
    before, with 200 rather than 201; with others it is a conflict.
    """
    task = task_of(app, body.task)
    await check_queue(app, body.queue)
    await app.check_webhook(body.webhook)
    batch = new_batch(task, _options(app, body, key))
    stored = await app.runtime.batches.submit(batch, _texts(task, body))
    location = f"{LOCATION}{stored}"
    content = {"batch": str(stored), "location": location, "total": len(body.items)}
    return JSONResponse(content, 201 if stored == batch.id else 200, headers={"location": location})


def _options(app: App, body: SubmitBatch, key: str | None) -> SubmitOptions:
    options = options_of(body, key) | {"spread": body.spread}
    if body.on_close is not None:
        options["on_close"] = task_of(app, body.on_close, field="on_close")
    if body.webhook is not None:
        options["webhook"] = body.webhook
    if body.max_failed is not None:
        options["policy"] = ClosePolicy.threshold(body.max_failed)
    return cast(SubmitOptions, options)


def _texts(task: Task[Any, Any], body: SubmitBatch) -> list[str]:
    """Return the arguments of every item. Raises RequestError 413, InvalidItemsError that tells of the first ones."""
    if len(body.items) > MAX_ATOMIC_ITEMS:
        rule = f"items must be at most {MAX_ATOMIC_ITEMS:,}, got {len(body.items):,}: submit several batches"
        raise RequestError(413, "payload_too_large", rule)
    encode = task.definition.codec.encode_item
    texts, faults = [], []
    for index, item in enumerate(body.items):
        try:
            texts.append(encode(index, item, spread=body.spread))
        except InvalidInputError as error:
            faults.append(error)
            if len(faults) == MOST_FAULTS:
                break
    if faults:
        raise InvalidItemsError(faults)
    return texts


@router.get("", response_model=BatchPage)
async def list_batches(app: Served, page: Annotated[Page, Query()]) -> dict[str, Any]:
    """List batches, newest first."""
    before = None if page.cursor is None else decode_place(page.cursor)
    # One more tells whether another page follows.
    found = await app.runtime.stores.inspect.list_batches(before=before, limit=page.limit + 1)
    shown = found[: page.limit]
    last = encode_place((shown[-1].created_at, shown[-1].id)) if len(found) > len(shown) else None
    return {"batches": to_json(shown), "next_cursor": last}


@router.get("/{batch_id}", response_model=BatchDocument)
async def get_batch(app: Served, batch_id: str) -> dict[str, Any]:
    """Return a batch and how far it is."""
    return batch_document(*await show_batch(app.runtime.stores.inspect, parse_id("batch id", batch_id)))


class ResultQuery(BaseModel):
    """Which results are read."""

    model_config = ConfigDict(extra="forbid")

    limit: Limit = USUAL
    #: It may name all transactions that were open when the page was read.
    cursor: str = Field("", max_length=16_000, description="`cursor` of the page before")


@router.get("/{batch_id}/results", response_model=ResultPage, operation_id="read_batch_results")
async def results(app: Served, batch_id: str, page: Annotated[ResultQuery, Query()]) -> dict[str, Any]:
    """Read finished items in the order they were recorded, failures included.

    Reading on from `cursor` misses nothing and repeats nothing, but for a failed item that is run again: it comes once
    more, with what came of that, so key what you keep by `index`. From the `cursor` of an item those may come again
    that ended at the same moment. A page ends early after 4 MiB.
    """
    inspect, found = app.runtime.stores.inspect, parse_id("batch id", batch_id)
    # Looked at first: what is closed then has no items that are not read now.
    batch, _ = await show_batch(inspect, found)
    limit = page.limit
    items = await inspect.read_items(found, cursor=page.cursor, limit=limit)
    while (fitting := _fitting(items.items)) < len(items.items):
        # Read once more, for the cursor of a page that ends there.
        limit = fitting
        items = await inspect.read_items(found, cursor=page.cursor, limit=limit)
    complete = batch.state is BatchState.CLOSED and limit == page.limit and len(items.items) < limit
    return {"items": [item_document(item) for item in items.items], "cursor": items.cursor, "state": batch.state,
            "complete": complete}  # fmt: skip


def _fitting(items: Sequence[BatchItem]) -> int:
    """Return how many of the first items, one at least, fit in an answer with their results."""
    size = 0
    for place, item in enumerate(items):
        size += len(json.dumps(item.result))
        if size > MOST_PAGE and place:
            return place
    return len(items)


class PauseBatch(BaseModel):
    """Why a batch is paused."""

    model_config = ConfigDict(extra="forbid")

    reason: str | None = Field(default=None, max_length=500, description="shown to whoever looks at the batch")


@router.post(
    "/{batch_id}/pause", dependencies=[needs(Scope.OPERATE)], response_model=BatchDocument, operation_id="pause_batch"
)
async def pause(app: Served, batch_id: str, body: PauseBatch | None = None) -> dict[str, Any]:
    """Start no item of a batch until it is resumed; running ones go on. Again: another reason."""
    batch = app.batch(parse_id("batch id", batch_id))
    await batch.pause(body.reason if body is not None else None)
    return batch_document(*await show_batch(app.runtime.stores.inspect, batch.id))


@router.post(
    "/{batch_id}/resume", dependencies=[needs(Scope.OPERATE)], response_model=BatchDocument, operation_id="resume_batch"
)
async def resume(app: Served, batch_id: str) -> dict[str, Any]:
    """Let the items of a paused batch start again, in their old order; no change if it is not paused."""
    batch = app.batch(parse_id("batch id", batch_id))
    await batch.resume()
    return batch_document(*await show_batch(app.runtime.stores.inspect, batch.id))


@router.post("/{batch_id}/cancel", dependencies=[needs(Scope.OPERATE)], response_model=BatchDocument)
async def cancel(app: Served, batch_id: str) -> dict[str, Any]:
    """Cancel a batch: no item starts any more, running ones are asked to stop."""
    inspect, found = app.runtime.stores.inspect, parse_id("batch id", batch_id)
    await show_batch(inspect, found)
    await app.batch(found).cancel()
    return batch_document(*await show_batch(inspect, found))


@router.post("/{batch_id}/retry", dependencies=[needs(Scope.OPERATE)])
async def retry(app: Served, batch_id: str) -> dict[str, Any]:
    """Run the failed items of a closed batch again, in a new round of it."""
    count = await app.batch(batch_id).retry_failed()
    return {"batch": batch_id, "retried": count}


@router.post("/{batch_id}/seal", dependencies=[needs(Scope.OPERATE)], response_model=BatchDocument)
async def seal(app: Served, batch_id: str) -> dict[str, Any]:
    """Declare an open batch complete as it stands, for example when its submitter died; no change if it is sealed."""
    batch = app.batch(batch_id)
    await batch.seal()
    return batch_document(*await show_batch(app.runtime.stores.inspect, batch.id))
