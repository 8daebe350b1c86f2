"""The feed of a report: its stages as they get on, and its end."""

from __future__ import annotations

import time

from headrace.apps.report.job import Job
from headrace.apps.report.progress import ReportProgress, look_at, progress_document
from headrace.engine.feeds.hub import FeedHub
from headrace.model.feed import Entry, NewEntry
from headrace.model.payload import encode_json

STAGE, ENDED = "stage", "ended"
#: Seconds between looks: at least so many, and so many times as long as a look takes.
LOOK, TIMES = 0.5, 20.0


def report_feed(job: Job) -> str:
    """Return the name of the feed of a report: of its last run."""
    return f"report:{job.id}:{job.number}"


def is_ended(entry: Entry) -> bool:
    """Whether an entry is the last of its feed."""
    return entry.type == ENDED


class ReportGrower:
    """Lets the feed of one report grow until its run is over."""

    behind = False

    def __init__(self, hub: FeedHub, job: Job) -> None:
        self._hub, self._job = hub, job
        self._next, self._told = 0.0, set[str]()
        self.over = False

    async def look(self) -> bool:
        """Append what has happened since; return whether that was something."""
        began = time.monotonic()
        if began < self._next:
            return False
        progress = await look_at(self._job)
        self._next = began + max(LOOK, TIMES * (time.monotonic() - began))
        fresh = [entry for entry in _entries(progress) if entry.key not in self._told]
        if fresh:
            await self._hub.append_all(report_feed(self._job), fresh)
        self._told |= {entry.key for entry in fresh if entry.key is not None}
        self.over = any(entry.type == ENDED for entry in fresh)
        return bool(fresh)


def _entries(progress: ReportProgress) -> list[NewEntry]:
    document = progress_document(progress)
    entries = [
        NewEntry(STAGE, encode_json(one, field="data"), _key(one))
        for one in document["stages"]
        if one["status"] != "pending"
    ]
    if progress.status != "running":
        told = {name: document[name] for name in ("status", "percent", "message", "error")}
        entries.append(NewEntry(ENDED, encode_json(told, field="data"), ENDED))
    return entries


def _key(one: dict[str, object]) -> str:
    return f"{one['stage']}/{one['status']}/{one['percent']}/{one.get('completed')}/{one.get('total')}"
