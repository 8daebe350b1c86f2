"""Verbs of batches: flushes of several users whose summaries one call of the model makes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import groupby
from uuid import UUID, uuid4

from headrace.apps.memory.data.blobs import Blob
from headrace.apps.memory.data.flushes import Flush
from headrace.apps.memory.rules.pace import Call, Pace, pace_of
from headrace.apps.memory.tables.checks import MOST_INT, storable
from headrace.apps.memory.tables.rows import blobs_of, flush_of
from headrace.apps.memory.tables.values import Sharing, WaitingFlush
from headrace.apps.memory.tables.verbs import Verbs


class BatchVerbs(Verbs):
    """Making batches, and keeping the summaries of flushes."""

    async def make_batch(self, flush_ids: Sequence[UUID]) -> UUID | None:
        """Join those of the flushes that still may be, in the order given, and return the batch; None: there are none.

        Make the job that asks for the summaries in the same transaction (`on`), or look for batches that have none
        with `stale_batches`.
        """
        row = await self._statements.fetch_one("make_batch", flush_ids=list(flush_ids), batch_id=uuid4())
        return None if row is None else row["id"]

    async def waiting_unbatched(
        self, limit: int, *, most_tokens: int = MOST_INT, waited: timedelta = timedelta()
    ) -> list[WaitingFlush]:
        """Return flushes that were never begun, have no summary and are in no batch, unless explicit; oldest first.

        None of them failed before or has more than `most_tokens`; all were made `waited` ago, or longer.
        """
        values = {"limit": limit, "most_tokens": most_tokens, "waited": waited}
        rows = await self._statements.fetch("waiting_unbatched", **values)
        return [WaitingFlush(flush_of(row), row["level"], row["language"]) for row in rows]

    async def stale_batches(self, after: timedelta, limit: int) -> list[UUID]:
        """Return batches made so long ago of which a flush still waits for its summary, oldest first."""
        return [row["id"] for row in await self._statements.fetch("stale_batches", after=after, limit=limit)]

    async def load_batch(self, batch_id: UUID) -> list[tuple[Flush, tuple[Blob, ...]]]:
        """Return the flushes of a batch that have not ended, in its order, each with its blobs in theirs."""
        rows = await self._statements.fetch("load_batch", batch_id=batch_id)
        parts = [list(part) for _, part in groupby(rows, key=lambda row: row["id"])]
        return [(flush_of(part[0]), blobs_of(part)) for part in parts]

    async def end_batch(self, batch_id: UUID, *, called_ms: float | None = None) -> list[str]:
        """Note that the call of a batch is over: who got no summary asks alone. Return its users, whose turn may be.

        `called_ms`: how long the call took, where there was one that brought something.
        """
        rows = await self._statements.fetch("end_batch", batch_id=batch_id, called_ms=called_ms)
        return [row["user_id"] for row in rows]

    async def pace(self) -> Pace:
        """Return how calls of batches went in the last minute, those of all processes."""
        rows = await self._statements.fetch("recent_calls")
        return pace_of([Call(row["ago"], row["called_ms"] / 1_000, row["flushes"]) for row in rows])

    async def sharing_of(self, flush_id: UUID) -> Sharing | None:
        """Return whether a flush that waits is open to be summarised with others; None: it does not wait."""
        row = await self._statements.fetch_one("sharing_of", flush_id=flush_id)
        return None if row is None else Sharing(row["sharing"])

    async def save_summary(self, flush_id: UUID, summary: str) -> str:
        """Keep the summary of a flush, and return what stands: the first. Of one that has ended nothing is kept."""
        row = await self._statements.fetch_one("save_summary", flush_id=flush_id, summary=storable(summary))
        return summary if row is None else row["summary"]

    async def load_summary(self, flush_id: UUID) -> str | None:
        """Return the summary of a flush; None: there is none yet. An empty one tells of nothing."""
        row = await self._statements.fetch_one("find_flush", flush_id=flush_id)
        return None if row is None else row["summary"]
