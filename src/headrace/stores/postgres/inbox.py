"""The inbox port on PostgreSQL: the note that a message was handled, and its whole effect, in one transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import timedelta
from hashlib import sha256
from itertools import islice
from typing import Any, TypeVar

import asyncpg

from headrace.model.errors import InvalidInputError
from headrace.model.inbox import Effect, Write
from headrace.model.session import LeaderTerm
from headrace.stores.postgres import event_rows, intake
from headrace.stores.postgres.database import Database, Transaction
from headrace.stores.postgres.faults import TRY_AGAIN
from headrace.stores.postgres.notifier import PostgresNotifier
from headrace.stores.postgres.outbox import EVENTS
from headrace.stores.postgres.rows import HEAD_STARTS
from headrace.stores.postgres.terms import fetch_under

T = TypeVar("T")
#: Longer ids, and those that a text of the database cannot hold, are kept as their hash.
_LONGEST_ID = 512


class PostgresInbox:
    """`ports.inbox.Inbox`. Locks: the note, keys of jobs, new rows, keys of signals in their order, woken jobs."""

    #: Writes get the connection of the transaction.
    writes = True

    def __init__(self, database: Database, notifier: PostgresNotifier) -> None:
        self._database, self._notifier = database, notifier

    async def handled(self, consumer: str, message_id: str) -> bool:
        """Whether a consumer has handled a message; cheap, asked before the work."""
        row = await self._database.fetch_one("find_handled", consumer=consumer, message_id=_kept(message_id))
        return row is not None and bool(row["handled"])

    async def accept(self, consumer: str, message_id: str, effect: Effect) -> bool:
        """Note that a consumer handled a message, and store the effect, all or nothing; then hint.

        Each of `effect.writes` is called with the asyncpg connection of the transaction: it must neither commit nor
        roll back, nor keep the connection or settings of it, and do nothing else that cannot be undone, for after a
        deadlock or a failed serialization all is rolled back and done again. Anything else it raises passes unchanged.
        """

        note = {"consumer": consumer, "message_id": _kept(message_id)}
        alone = _alone(effect)
        if alone is not None:
            return await self._accept_alone(note, alone)

        async def work(tx: Transaction) -> set[str] | None:
            return await _store(tx, effect) if await tx.fetch("note_handled", **note) else None

        topics = await _unchanged(self._database, work)
        for topic in sorted(topics or ()):
            self._notifier.hint(topic)
        return topics is not None

    async def _accept_alone(self, note: dict[str, str], events: dict[str, list[Any]]) -> bool:
        """Store a note and the events of one statement, or of none, without the round trips of a transaction."""
        if not events:
            return bool(await self._database.fetch("note_handled", **note))
        first = bool(await self._database.fetch("accept_events", **note, **events))
        if first:
            self._notifier.hint(EVENTS)
        return first

    async def handled_among(self, consumer: str, message_ids: Sequence[str]) -> frozenset[str]:
        """Return those of messages that a consumer has handled; cheap, asked before the work."""
        kept = {_kept(message_id): message_id for message_id in message_ids}
        rows = await self._database.fetch("find_all_handled", consumer=consumer, message_ids=list(kept))
        return frozenset(kept[row["message_id"]] for row in rows)

    async def accept_batch(self, consumer: str, message_ids: Sequence[str], effect: Effect) -> frozenset[str]:
        """Note that a consumer handled messages, and store their effect, all or nothing; then hint.

        Returns those that had been noted before, and then nothing is stored. Writes are as with `accept`.
        """
        # In the order of ids: who notes the same ones waits instead of deadlocking.
        kept = dict(sorted((_kept(message_id), message_id) for message_id in message_ids))

        async def work(tx: Transaction) -> set[str]:
            rows = await tx.fetch("note_all_handled", consumer=consumer, message_ids=list(kept))
            if len(rows) < len(kept):
                raise _PassedError(_RepeatedError(kept.keys() - {row["message_id"] for row in rows}))
            return await _store(tx, effect)

        try:
            topics = await _unchanged(self._database, work)
        except _RepeatedError as repeated:
            return frozenset(kept[name] for name in repeated.names)
        for topic in sorted(topics):
            self._notifier.hint(topic)
        return frozenset()

    async def prune_inbox(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove up to `limit` notes that are older."""
        return len(await fetch_under(self._database, term, "prune_inbox", retention=older_than, limit=limit))


def _alone(effect: Effect) -> dict[str, list[Any]] | None:
    """Return the events of an effect as one statement takes them, empty for none; None: it takes a transaction."""
    if effect.jobs or effect.signals or effect.writes:
        return None
    groups = list(islice(event_rows.slices(effect.events), 2))
    return None if len(groups) > 1 else groups[0] if groups else {}


async def _store(tx: Transaction, effect: Effect) -> set[str]:
    """Store an effect, then what its writes add to it, and return the topics of the hints."""
    said = effect.said
    topics = await _store_said(tx, effect)
    try:
        await _write(tx, effect.writes)
    finally:
        added = effect.split(said)
    return topics | await _store_said(tx, added)


async def _store_said(tx: Transaction, effect: Effect) -> set[str]:
    if effect.jobs:
        await intake.insert_with(tx, effect.jobs, retrying=False)
    await event_rows.insert_with(tx, effect.events)
    queues = {job.spec.queue for job in effect.jobs}
    # In the order of keys: who sends the same ones waits instead of deadlocking.
    for key, payload in sorted(effect.signals):
        [row] = await tx.fetch("send_signal", key=key, payload=payload, head_starts=HEAD_STARTS)
        queues |= set(row["queues"] or ())
    return {f"queue:{queue}" for queue in queues} | ({EVENTS} if effect.events else set())


async def _write(tx: Transaction, writes: Iterable[Write]) -> None:
    for write in writes:
        try:
            await write(tx.connection)
        except TRY_AGAIN:
            raise
        except Exception as error:
            raise _PassedError(error) from error
        await _check_open(tx, write)


async def _check_open(tx: Transaction, write: Write) -> None:
    """Raise InvalidInputError if a write left no transaction that can be committed: its end would look like success."""
    name = getattr(write, "__qualname__", type(write).__qualname__)
    if not tx.connection.is_in_transaction():
        raise InvalidInputError("write", "must neither commit nor roll back the transaction it is part of", name)
    try:
        await tx.fetch("check_link")
    except asyncpg.InFailedSQLTransactionError:
        rule = "must do in a savepoint (async with connection.transaction()) what may fail without its raising"
        raise InvalidInputError("write", rule, name) from None


class _RepeatedError(Exception):
    """Messages had been noted before: rolls back the notes of the others."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__("noted before")
        self.names = frozenset(names)


class _PassedError(Exception):
    """Carries what a write raised past the sorting of faults: it is not the store's."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


async def _unchanged(database: Database, work: Callable[[Transaction], Awaitable[T]]) -> T:
    """Run `work` in a transaction, and raise what a write raised as it was."""
    try:
        return await database.run(work)
    except _PassedError as passed:
        error = passed.error
    raise error


def _kept(message_id: str) -> str:
    """Return an id as it is noted."""
    if len(message_id) <= _LONGEST_ID and message_id.isprintable():  # and so without NUL and half characters
        return message_id
    return "sha256:" + sha256(message_id.encode("utf-8", "surrogatepass")).hexdigest()
