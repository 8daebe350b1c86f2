"""What messages say: of batches that closed, of runs that ended, and what somebody gave."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from headrace.engine.queries import to_json
from headrace.model.batch import BatchState, BatchView, closed_at_of, closing_facts
from headrace.model.errors import HeadraceError
from headrace.model.job import JobError
from headrace.model.run import RunState

if TYPE_CHECKING:
    from headrace.app import App
    from headrace.batch import Batch

#: Characters of an error's text.
MOST_TEXT = 2_000
#: A run that is not being cancelled so long after that was asked will not be: the store did not take it.
MOST_CANCEL_SECONDS = 60.0


class NotYet(HeadraceError):
    """What the message tells of has not come about yet."""


class Gone(HeadraceError):
    """There is nothing to tell."""


async def message_of(
    app: App, subject: str, order: dict[str, Any], closed: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the body of a message; `closed`: how the round of a batch ended that it tells of.

    Raises NotFoundError, Gone where there is nothing to tell, NotYet.
    """
    if order["type"] == "batch.closed":
        return await _of_batch(app, subject, closed)
    if order["type"] == "run.ended":
        return await _of_run(app, subject, order.get("cancelled"))
    return _message(order["type"], datetime.now(UTC), order["data"])


async def _of_batch(app: App, subject: str, closed: dict[str, Any] | None) -> dict[str, Any]:
    batch = app.batch(subject)
    view = await batch.view()
    closed = await _closed_now(batch, view) if closed is None else closed
    closed_at = closed_at_of(closed)
    data: dict[str, Any] = {"id": view.id, "key": view.key, "task": view.task, "state": BatchState.CLOSED}
    data |= {**closed, "created_at": view.created_at, "closed_at": closed_at}
    return _message("batch.closed", closed_at, data)


async def _closed_now(batch: Batch, view: BatchView) -> dict[str, Any]:
    """Return how the last round ended, for jobs of versions that did not tell it. Raises Gone where another runs."""
    if view.closed_at is None or view.outcome is None:
        raise Gone("the batch goes on; a message of its own tells of its next end")
    counts = await batch.progress()
    return closing_facts(round=view.round, outcome=view.outcome, counts=counts, closed_at=view.closed_at)


async def _of_run(app: App, subject: str, cancelled: float | None) -> dict[str, Any]:
    """`cancelled`: when the run was asked to stop; one that ends otherwise tells of that by a message of its own."""
    view = await app.find_run(UUID(subject)).view()
    if cancelled is not None and view.state is not RunState.CANCELLED:
        _wait_for_cancel(view.state, cancelled)
    data = {
        "id": view.id, "workflow": view.workflow, "version": view.version, "key": view.key, "state": view.state,
        "error": _error(view.error), "rerun_of": view.rerun_of, "created_at": view.created_at,
        "finished_at": view.finished_at,
    }  # fmt: skip
    return _message("run.ended", view.finished_at or datetime.now(UTC), data)


def _wait_for_cancel(state: RunState, asked: float) -> None:
    """Raise NotYet while a run may still come to be cancelled, else Gone."""
    if state is RunState.CANCELLING or (state is RunState.RUNNING and time.time() - asked < MOST_CANCEL_SECONDS):
        raise NotYet
    raise Gone("the run was not cancelled after all; a message of its own tells of its end")


def _error(error: JobError | None) -> dict[str, str] | None:
    return None if error is None else {"kind": error.kind, "message": error.message[:MOST_TEXT]}


def _message(type: str, at: datetime, data: Any) -> dict[str, Any]:
    body: dict[str, Any] = to_json({"type": type, "timestamp": at, "data": data})
    return body
