"""Verbs of work on a flush: to hold it under a fence and a lease, and to let go of it."""

from __future__ import annotations

import json
from datetime import timedelta
from uuid import UUID

import asyncpg

from headrace.apps.memory.data.flushes import Flush, FlushState, Held
from headrace.apps.memory.data.results import FlushResult
from headrace.apps.memory.errors import LostFlushError
from headrace.apps.memory.tables.checks import storable
from headrace.apps.memory.tables.rows import blobs_of, flush_of
from headrace.apps.memory.tables.values import Ended, NotYet
from headrace.apps.memory.tables.verbs import Verbs

#: Characters of an error that are kept.
_MOST_ERROR = 2_000


class HoldingVerbs(Verbs):
    """Holding flushes, one of a user at a time."""

    async def begin_flush(self, flush_id: UUID, lease: timedelta) -> Held | NotYet | Ended:
        """Take a flush to work on it for `lease`, also from whoever held it before, whose writes are refused then.

        NotYet: another of the user is worked on, or an earlier one is to be. Ended: there is nothing to do.
        """
        try:
            rows = await self._statements.fetch("begin_flush", flush_id=flush_id, lease=lease)
        except asyncpg.UniqueViolationError:
            rows = []  # another of the user was begun at the same moment
        if rows:
            return Held(flush_of(rows[0]), rows[0]["fence"], blobs_of(rows))
        row = await self._statements.fetch_one("find_flush", flush_id=flush_id)
        if row is None:
            return Ended(None)
        flush = flush_of(row)
        return Ended(flush.state) if flush.state in (FlushState.DONE, FlushState.FAILED) else NotYet(flush)

    async def renew(self, held: Held, lease: timedelta) -> bool:
        """Move the lease on to `lease` from now; False: the flush is another's, stop."""
        values = {"flush_id": held.flush.id, "fence": held.fence, "lease": lease}
        return bool(await self._statements.fetch("renew_flush", **values))

    async def save_result(self, held: Held, result: FlushResult) -> FlushResult:
        """Keep what the model made of the flush, and return what stands: the first. Raises LostFlushError."""
        text = json.dumps(storable(result.to_json()), ensure_ascii=False)
        row = await self._statements.fetch_one("save_result", flush_id=held.flush.id, fence=held.fence, result=text)
        if row is None:
            raise lost(held)
        return FlushResult.from_json(json.loads(row["result"]))

    async def load_result(self, flush_id: UUID) -> FlushResult | None:
        """Return what the model made of a flush, once it is done what was stored of it; or None."""
        row = await self._statements.fetch_one("find_flush", flush_id=flush_id)
        return FlushResult.from_json(json.loads(row["result"])) if row is not None and row["result"] else None

    async def fail_flush(self, flush_id: UUID, error: str, *, fence: int | None = None) -> bool:
        """End a flush as failed, so that it holds up no other; False: it had ended before.

        `fence`: that of a holder, who cannot fail what is another's by now; without it whoever holds it has lost it.
        """
        text = storable(error)[:_MOST_ERROR]
        return bool(await self._statements.fetch("fail_flush", flush_id=flush_id, error=text, fence=fence))

    async def release_expired(self, limit: int) -> list[UUID]:
        """Let flushes wait again whose lease has ended, and return their ids. Their rows stay bound to them."""
        return [row["id"] for row in await self._statements.fetch("release_expired", limit=limit)]

    async def retry_failed(
        self, after: timedelta, most_rounds: int | None, limit: int, *, user_id: str | None = None
    ) -> list[Flush]:
        """Let flushes wait again that failed so long ago, `most_rounds` times each at most, and return them.

        `most_rounds`: None for however often. `user_id`: those of this user alone.
        """
        values = {"after": after, "most_rounds": most_rounds, "limit": limit, "user_id": user_id}
        rows = await self._statements.fetch("retry_failed", **values)
        return [flush_of(row) for row in rows]

    async def prune(self, older_than: timedelta, limit: int) -> int:
        """Delete flushes that were done so long ago, and batches of then; return how many. Rows of buffers stay."""
        flushes = await self._statements.fetch("prune_flushes", older_than=older_than, limit=limit)
        batches = await self._statements.fetch("prune_batches", older_than=older_than, limit=limit)
        return len(flushes) + len(batches)

    async def take_overlooked(self, after: timedelta, limit: int) -> list[Flush]:
        """Return flushes that wait though it is their turn, and were not looked at for so long; each is now."""
        rows = await self._statements.fetch("take_overlooked", after=after, limit=limit)
        return [flush_of(row) for row in rows]


def lost(held: Held) -> LostFlushError:
    """Return the error of a holder that has lost its flush."""
    return LostFlushError(
        f"flush {held.flush.id} of user {held.flush.user_id} is not held under fence {held.fence} any more: stop "
        "working on it; nothing was written"
    )
