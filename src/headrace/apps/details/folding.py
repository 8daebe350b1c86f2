"""What a service tells of details when it is scraped: the figures of ended batches, and the jobs that wait.

The feed of ended batches is folded from its oldest entry on, each time from where the last scrape left off, so that
all services of a store tell the same. Jobs that wait are looked at within bounds, and not at every scrape.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from headrace.apps.details.figures import Figures, expose_sizes
from headrace.apps.details.names import DONE_FEED, INTAKE_QUEUE, SUBTASKS_QUEUE
from headrace.apps.details.priorities import HIGHEST, LOWEST, priority_class
from headrace.model.job import JobState, JobView

if TYPE_CHECKING:
    from headrace import App

#: Entries of one read, and reads of one scrape at most.
PAGE, MOST_PAGES = 500, 40
#: Jobs of a queue that are looked at, the newest, and for how many seconds what was seen holds.
MOST_WAITING, LOOK_SECONDS = 500, 5.0


@dataclass
class Fold:
    """What one process has folded, and what it saw waiting."""

    figures: Figures = field(default_factory=Figures)
    #: Whether the end of the feed was reached once: before, the figures say nothing, lest a part looks like a restart.
    is_whole: bool = False
    waiting: Mapping[int, int] = field(default_factory=dict)
    looked_at: float | None = None
    _one: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def expose(self, app: App) -> str:
        """Return what is known now, in Prometheus's text format. Raises StoreUnavailableError."""
        async with self._one:
            await self._fold(app)
            if self.looked_at is None or time.monotonic() - self.looked_at >= LOOK_SECONDS:
                self.waiting, self.looked_at = await count_waiting(app), time.monotonic()
        return (self.figures.expose() if self.is_whole else "") + expose_sizes(self.waiting)

    async def _fold(self, app: App) -> None:
        feed, figures = app.feed(DONE_FEED), self.figures
        if await feed.end() < figures.seq:  # all its entries were pruned, and its numbers begin again
            figures.seq = 0
        for _ in range(MOST_PAGES):
            entries = await feed.read(figures.seq, PAGE)
            for entry in entries:
                figures.add(entry.seq, entry.data if isinstance(entry.data, Mapping) else {})
            if len(entries) < PAGE:
                self.is_whole = True
                return


_FOLDS: WeakKeyDictionary[App, Fold] = WeakKeyDictionary()


async def expose_details(app: App) -> str:
    """Return the figures of the details of an app, in Prometheus's text format. Raises StoreUnavailableError."""
    return await _FOLDS.setdefault(app, Fold()).expose(app)


async def count_waiting(app: App) -> Counter[int]:
    """Count requests and parts of batches that wait for their turn, by priority. Raises StoreUnavailableError."""
    inspect, found = app.runtime.stores.inspect, Counter[int]()
    for queue in (INTAKE_QUEUE, SUBTASKS_QUEUE):
        jobs = await inspect.list_jobs(queue=queue, state=JobState.READY, limit=MOST_WAITING)
        found.update(_priority(job) for job in jobs)
    return found


def _priority(job: JobView) -> int:
    """Return the priority that was asked for; of a job that does not tell, the highest of its class."""
    args = json.loads(job.args) if isinstance(job.args, str) else job.args
    told = _asked(args).get("priority")
    if isinstance(told, int) and LOWEST <= told <= HIGHEST:
        return told
    return next((each for each in range(HIGHEST, LOWEST, -1) if priority_class(each) >= job.priority), LOWEST)


def _asked(args: Any) -> Mapping[str, Any]:
    kwargs = args.get("kwargs") if isinstance(args, Mapping) else None
    if not isinstance(kwargs, Mapping):
        return {}
    asked = kwargs.get("request", kwargs.get("asked"))
    return asked if isinstance(asked, Mapping) else {}
