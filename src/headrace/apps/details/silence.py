"""Departures that nothing answers: they are given up, so that whoever waits for them goes on without.

Parts have all the time that it takes them to go out, however long the queue, a pause or a closed pool holds them up.
Only what has gone out and is not answered is silent. A wait that was given up stays so: its coordinator finds the same
whenever it runs again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from headrace.apps.details.names import CREATED, SUBTASK_TASK

if TYPE_CHECKING:
    from headrace import App
    from headrace.resume_handles import ResumeHandle

#: Parts that say nothing for so long after they went out, neither an answer nor a dead letter, are counted as dead.
PATIENCE = timedelta(minutes=15)
#: Waits that are looked at, the newest.
MOST = 10_000


async def waits(app: App) -> Sequence[ResumeHandle]:
    """Return what coordinators wait for: a handle for each departure that has not been answered in full."""
    return [handle for handle in await app.handles.list(limit=MOST) if handle.view.expect_types == (CREATED,)]


async def give_up_silent(app: App) -> None:
    """Give up the departures whose last part went out so long ago that no answer is to be expected."""
    until = datetime.now(UTC) - PATIENCE
    for handle in await waits(app):
        if handle.view.created_at < until and await _has_gone_by(app, handle.correlation_id, until):
            await app.handles.cancel(handle.correlation_id)


async def _has_gone_by(app: App, correlation: str, until: datetime) -> bool:
    """Whether all parts of a departure had gone out by then; of one that was forgotten it is taken so."""
    gone = await app.runtime.stores.inspect.find_batch(SUBTASK_TASK, correlation)
    return gone is None or (gone.closed_at is not None and gone.closed_at < until)
