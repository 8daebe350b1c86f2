"""Departures that nothing answers: they are given up, so that whoever waits for them goes on without.

Parts have all the time that it takes them to go out, however long the queue, a pause or a closed pool holds them up.
Only what has gone out and is not answered is silent. A wait that was given up stays so: its coordinator finds the same
whenever it runs again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from headrace.apps.details.names import CREATED, SUBTASK_TASK, batch_of, feed_name

if TYPE_CHECKING:
    from headrace import App
    from headrace.resume_handles import ResumeHandle

#: Parts that say nothing for so long after they went out, neither an answer nor a dead letter, are counted as dead.
PATIENCE = timedelta(minutes=15)
#: While the mode changes to single calls, a batch to which nothing comes for so long is made by its coordinator.
STILL_SECONDS = 30.0
#: How often that is looked at.
LOOK_SECONDS = 1.0
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


@dataclass
class Stillness:
    """Which batches bring nothing while the mode changes: their coordinators are to wait for parts no longer."""

    app: App
    #: By batch: the last number in its feed, and since when.
    _seen: dict[str, tuple[int, float]] = field(default_factory=dict)
    _looked_at: float = 0.0

    async def give_up(self) -> None:
        """Give up the waits of batches that have brought nothing for STILL_SECONDS, as far as this has seen it."""
        now = time.monotonic()
        if now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        for handle in await waits(self.app):
            batch_id = batch_of(handle.correlation_id)
            end = await self.app.feed(feed_name(batch_id)).end()
            seen, since = self._seen.get(batch_id, (-1, now))
            if seen != end:
                self._seen[batch_id] = end, now
            elif now - since >= STILL_SECONDS:
                await self.app.handles.cancel(handle.correlation_id)
