"""Verbs of buffers: what waits, and how it is bound to flushes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from headrace.apps.memory.data.flushes import Flush, FlushState, Reason, flush_id
from headrace.apps.memory.tables.checks import check_user, check_whole
from headrace.apps.memory.tables.rows import flush_of
from headrace.apps.memory.tables.splitting import Row, is_full, split
from headrace.apps.memory.tables.statements import Statements
from headrace.apps.memory.tables.values import Buffer
from headrace.apps.memory.tables.verbs import Verbs


class BufferVerbs(Verbs):
    """Looking at buffers, and making flushes of them."""

    async def buffer(self, user_id: str) -> Buffer:
        """Return what waits of a user; an unknown one has an empty buffer."""
        check_user(user_id)
        row = await self._statements.fetch_one("buffer", user_id=user_id)
        return Buffer(user_id, row["rows"], int(row["tokens"]), row["oldest_at"], row["newest_at"], row["level"])

    async def idle_users(self, idle: timedelta, limit: int) -> list[str]:
        """Return users whose buffer is not empty and got nothing for `idle`, those that wait longest first."""
        rows = await self._statements.fetch("idle_users", idle=idle, limit=limit)
        return [row["user_id"] for row in rows]

    async def make_flushes(
        self, user_id: str, reason: Reason, *, most_tokens: int, full: int | None = None
    ) -> list[Flush]:
        """Bind what waits of a user to flushes of at most `most_tokens`, in the order of time, and return them.

        `full`: a flush with more than so many tokens takes no further blob; where the reason is that the buffer is
        full, what is left and is not as much stays in the buffer. So the same blobs are the same flushes, however often
        and whenever one looked.

        However many do so at once, a row is in one flush, and flushes are numbered in the order of their rows. Returns
        an empty list when nothing waits. A blob that has more tokens by itself is a flush of its own.
        """
        check_user(user_id)
        check_whole("most_tokens", most_tokens, 1)

        async def bind(statements: Statements) -> list[Flush]:
            rows = await statements.fetch("take_idle_rows", user_id=user_id)
            parts = _parts(rows, most_tokens, full, keep_rest=reason is Reason.FULL)
            return await _bind(statements, user_id, parts, rows[0]["last_flush"], reason) if parts else []

        return await self._statements.together(bind)

    async def unfinished(self, user_id: str) -> list[Flush]:
        """Return the flushes of a user that wait or are worked on, in their order."""
        check_user(user_id)
        return [flush_of(row) for row in await self._statements.fetch("unfinished_flushes", user_id=user_id)]

    async def find_flush(self, flush_id: UUID) -> Flush | None:
        """Return a flush, or None."""
        row = await self._statements.fetch_one("find_flush", flush_id=flush_id)
        return None if row is None else flush_of(row)

    async def list_flushes(
        self, user_id: str | None = None, state: FlushState | None = None, limit: int = 100
    ) -> list[Flush]:
        """Return flushes, newest first: of a user or of all, of a state or of every one."""
        if user_id is None:
            rows = await self._statements.fetch("list_flushes", state=state, limit=limit)
        else:
            check_user(user_id)
            rows = await self._statements.fetch("list_user_flushes", user_id=user_id, state=state, limit=limit)
        return [flush_of(row) for row in rows]


def _parts(rows: Sequence[Any], most_tokens: int, full: int | None, *, keep_rest: bool) -> list[list[Row]]:
    """Return rows as flushes take them; `keep_rest`: without the last one where that is not full."""
    parts = split((Row(row["blob_id"], row["token_size"]) for row in rows), most_tokens, full) if rows else []
    if parts and keep_rest and full is not None and not is_full(parts[-1], full):
        parts.pop()
    return parts


async def _bind(
    statements: Statements, user_id: str, parts: list[list[Row]], last_flush: int, reason: Reason
) -> list[Flush]:
    blob_ids, flush_ids = _placed(user_id, parts)
    made = await statements.fetch(
        "insert_flushes", user_id=user_id, blob_ids=blob_ids, flush_ids=flush_ids, last_flush=last_flush,
        reason=reason.value,
    )  # fmt: skip
    return sorted(map(flush_of, made), key=lambda flush: flush.number)


def _placed(user_id: str, parts: list[list[Row]]) -> tuple[list[UUID], list[UUID]]:
    """Return the blobs in their order, and the flush of each."""
    blob_ids: list[UUID] = []
    flush_ids: list[UUID] = []
    for part in parts:
        blobs = tuple(row.blob_id for row in part)
        blob_ids.extend(blobs)
        flush_ids.extend([flush_id(user_id, blobs)] * len(blobs))
    return blob_ids, flush_ids
