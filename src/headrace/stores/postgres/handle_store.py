"""The handle store port on PostgreSQL: what paused work waits for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar

from headrace.model.errors import ConflictError, HandleExpiredError, InvalidInputError, NotFoundError
from headrace.model.names import check_key
from headrace.model.resume_handle import (
    HandleState,
    HandleView,
    NewHandle,
    NotedEvent,
    no_handle,
    same_wait,
)
from headrace.model.session import LeaderTerm
from headrace.stores.postgres.database import Database, Row, Transaction
from headrace.stores.postgres.handle_rows import handle_view, noted_event, noted_values
from headrace.stores.postgres.notifier import PostgresNotifier
from headrace.stores.postgres.rows import HEAD_STARTS
from headrace.stores.postgres.terms import hold_term

T = TypeVar("T")
#: What a transaction answers, and the queues of the jobs it woke.
_Answer = tuple[T, list[str]]


class PostgresHandleStore:
    """`ports.handle_store.HandleStore`.

    Locks: the row of the correlation id, which whoever comes first makes and on which all that happens to it takes
    turns; then the signals of what ends, by key, and the jobs these wake. What runs behind the lock of the row has a
    snapshot of its own, so it sees what others kept while the lock was waited for. Noting and registering, for which
    somebody waits, are functions of the schema and one statement each; statements within them see as much.
    """

    def __init__(self, database: Database, notifier: PostgresNotifier) -> None:
        self._database, self._notifier = database, notifier

    async def register_handle(self, handle: NewHandle) -> HandleView:
        """Store a handle; it may be resolved at once by what came early. Raises ConflictError."""
        [stored] = await self._call(
            "register_handle", correlation_id=handle.correlation_id, expect_types=list(handle.expect_types),
            expect_count=handle.expect_count, request_types=list(handle.request_types), agents=list(handle.agents),
            token_hash=handle.token_hash, target=handle.target, timeout=handle.timeout,
        )  # fmt: skip
        if not same_wait(handle, stored):
            raise ConflictError(
                f"The correlation id {handle.correlation_id!r} has a handle that waits for something else "
                f"({stored.expect_count} of {', '.join(stored.expect_types)}). Use a new correlation id, or wait for "
                "the same types, count, agents and target."
            )
        return stored

    async def note_event(self, noted: NotedEvent) -> HandleView | None:
        """Keep an event of a correlation id, once per event id; return the handle, if there is one by now."""
        correlation_id = noted.event.correlation_id
        if correlation_id is None or not _fits(correlation_id):
            return None
        views = await self._call("note_event", correlation_id=correlation_id, **noted_values(noted))
        return views[0] if views else None

    async def resolve_by_token(self, token_hash: str, payload: str) -> HandleView:
        """End a waiting handle by its token. Raises NotFoundError, ConflictError and HandleExpiredError."""
        view, ours = await self._run(partial(_resolve, token_hash=token_hash, payload=payload))
        if not ours:
            _check_end(view, payload)
        return view

    async def cancel_handle(self, correlation_id: str) -> HandleView:
        """End a waiting handle; one that has ended stays as it is. Raises NotFoundError."""
        return await self._run(partial(_cancel, correlation_id=correlation_id))

    async def expire_handles(self, *, limit: int) -> list[HandleView]:
        """End up to `limit` waiting handles whose time has come, and return them."""

        async def work(tx: Transaction) -> _Answer[list[HandleView]]:
            due = [row["correlation_id"] for row in await tx.fetch("due_handles", limit=limit)]
            ended, queues = await _end(tx, due, HandleState.EXPIRED)
            return sorted(ended, key=attrgetter("expires_at")), queues

        return await self._run(work)

    async def due_wakes(self, *, limit: int, again_in: timedelta) -> list[HandleView]:
        """Return up to `limit` ended handles whose target is to be woken; no other process sees them so long."""
        rows = await self._database.fetch("due_wakes", limit=limit, again_in=again_in)
        return sorted((handle_view(row) for row in rows), key=attrgetter("ended_at"))

    async def mark_woken(self, correlation_id: str) -> None:
        """Note that the target of a handle was woken, or needs it no more."""
        await self._database.fetch("mark_woken", correlation_id=correlation_id)

    async def get_handle(self, correlation_id: str) -> HandleView | None:
        """Return a handle."""
        row = await self._database.fetch_one("get_handle", correlation_id=correlation_id)
        return None if row is None else handle_view(row)

    async def list_handles(self, *, waiting: bool, limit: int) -> list[HandleView]:
        """Return handles, the newest first; with `waiting` only those."""
        return [handle_view(row) for row in await self._database.fetch("list_handles", waiting=waiting, limit=limit)]

    async def noted_events(self, correlation_id: str) -> list[NotedEvent]:
        """Return the events that are kept for a handle, as they came."""
        rows = await self._database.fetch("noted_events", correlation_id=correlation_id)
        return [noted_event(row["noted"]) for row in rows]

    async def prune_handles(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove up to `limit` handles that ended longer ago, with their events, and early events as old."""

        async def work(tx: Transaction) -> int:
            if term is not None and not await hold_term(tx, term):
                return 0
            old = [
                row["correlation_id"] for row in await tx.fetch("hold_old_handles", retention=older_than, limit=limit)
            ]
            return len(await tx.fetch("prune_handles", correlation_ids=old, retention=older_than)) if old else 0

        return await self._database.run(work)

    async def _call(self, name: str, /, **values: Any) -> list[HandleView]:
        """Run a statement that may end handles, hint the queues of the jobs it woke, and return what it tells."""
        views, queues = _told(await self._database.fetch(name, head_starts=HEAD_STARTS, **values))
        self._hint(queues)
        return views

    async def _run(self, work: Callable[[Transaction], Awaitable[_Answer[T]]]) -> T:
        """Run a transaction and hint the queues of the jobs it woke."""
        answer, queues = await self._database.run(work)
        self._hint(queues)
        return answer

    def _hint(self, queues: Sequence[str]) -> None:
        for queue in queues:
            self._notifier.hint(f"queue:{queue}")


def _fits(correlation_id: str) -> bool:
    """Whether a handle may have this correlation id; events of others come with whatever they have."""
    try:
        check_key("correlation_id", correlation_id)
    except InvalidInputError:
        return False
    return True


async def _resolve(tx: Transaction, *, token_hash: str, payload: str) -> _Answer[tuple[HandleView, bool]]:
    """Return the handle of a token, and whether it ended here."""
    row = await tx.fetch_one("lock_token", token_hash=token_hash)
    if row is None:
        raise NotFoundError("There is no handle with this token. Use the one that was given when it was registered.")
    view = handle_view(row)
    if view.state.final:
        return (view, False), []
    if row["overdue"]:
        # No sweep has ended it yet. The end has to commit, so the error comes behind the transaction.
        [ended], queues = await _end(tx, [view.correlation_id], HandleState.EXPIRED)
        return (ended, False), queues
    [ended], queues = await _end(tx, [view.correlation_id], HandleState.RESOLVED, payload)
    return (ended, True), queues


def _check_end(view: HandleView, payload: str) -> None:
    """Raise what a token finds that comes too late, unless it is the one that was in time.

    Behind the transaction: within, an error that is a TimeoutError would pass for one of the driver's.
    """
    if view.state is HandleState.EXPIRED:
        raise HandleExpiredError(
            f"The handle {view.correlation_id!r} expired at {view.ended_at:%Y-%m-%d %H:%M:%S} UTC."
        )
    if view.state is HandleState.CANCELLED or view.payload != payload:
        how = "by another payload" if view.payload is not None else "before the token came"
        raise ConflictError(f"The handle {view.correlation_id!r} was {view.state} {how}. A token ends one wait, once.")


async def _cancel(tx: Transaction, *, correlation_id: str) -> _Answer[HandleView]:
    row = await tx.fetch_one("lock_handle", correlation_id=correlation_id)
    if row is None:
        raise no_handle(correlation_id)
    view = handle_view(row)
    if view.state.final:
        return view, []
    [ended], queues = await _end(tx, [correlation_id], HandleState.CANCELLED)
    return ended, queues


async def _end(
    tx: Transaction, correlation_ids: Sequence[str], state: HandleState, payload: str | None = None
) -> _Answer[list[HandleView]]:
    """End handles that this transaction holds and that wait; send their signals and wake who is parked on them."""
    values = {"correlation_ids": list(correlation_ids), "state": state, "payload": payload}
    return _told(await tx.fetch("end_handles", head_starts=HEAD_STARTS, **values))


def _told(rows: Sequence[Row]) -> _Answer[list[HandleView]]:
    """Return the handles that a statement tells, and the queues of the jobs that their ends woke."""
    return [handle_view(row) for row in rows], [queue for row in rows for queue in row["queues"] or ()]
