"""The blob sweeper: large values leave after the run they belong to, on the leader only.

Guaranteed: no blob of a run that exists goes, nor one that was written within the grace: it is there before its run is.
Nor does anything of another store that uses the same storage.
Not guaranteed: when. A pass looks at every blob, in bounded steps, and remembers only where it stands.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from headrace.engine.loops.leadership import Leadership
from headrace.engine.loops.loop import Loop
from headrace.engine.values import runs_folder
from headrace.ports.blob_store import BlobStore
from headrace.ports.clock import Clock
from headrace.ports.run_store import RunStore

LOG = logging.getLogger("headrace.blob-sweeper")

SLICE = 500
#: Also how wrong the clocks of this machine and of the storage may be.
GRACE = timedelta(hours=1)


class BlobSweeper(Loop):
    """Looks at one slice of the blobs per step and comes back at once until the pass is over."""

    name = "blob-sweeper"

    def __init__(
        self, runs: RunStore, blobs: BlobStore, leadership: Leadership, clock: Clock,
        interval: timedelta = timedelta(minutes=10),
    ) -> None:  # fmt: skip
        super().__init__(interval)
        self._runs = runs
        self._blobs = blobs
        self._leadership = leadership
        self._clock = clock
        self._pass: AsyncIterator[tuple[str, datetime]] | None = None

    async def step(self) -> None:
        """Sweep once, if this process leads."""
        if self._leadership.term is None:
            self._pass = None
            return
        found, self._pass = self._pass or self._blobs.list_blobs(runs_folder(await self._runs.store_id())), None
        entries = await _take(found, SLICE)
        await self._remove_orphans([key for key, changed_at in entries if changed_at < self._clock.now() - GRACE])
        # A step that failed begins a new pass: a listing that broke off cannot be read on.
        if len(entries) == SLICE:
            self._pass = found
            self.wake()

    async def _remove_orphans(self, keys: Sequence[str]) -> None:
        owners = {key: owner for key in keys if (owner := _run_of(key)) is not None}
        if not owners:
            return
        known = await self._runs.known_runs(list(set(owners.values())))
        orphans = [key for key, owner in owners.items() if owner not in known]
        for key in orphans:
            await self._blobs.delete_blob(key)
        if orphans:
            LOG.debug("removed %s blobs of runs that are gone", len(orphans))


async def _take(found: AsyncIterator[tuple[str, datetime]], most: int) -> list[tuple[str, datetime]]:
    entries: list[tuple[str, datetime]] = []
    async for entry in found:
        entries.append(entry)
        if len(entries) == most:
            break
    return entries


def _run_of(key: str) -> UUID | None:
    """Return the run that a blob belongs to: the third part of its key; None: somebody else's."""
    try:
        return UUID(key.split("/")[2])
    except (IndexError, ValueError):
        return None
