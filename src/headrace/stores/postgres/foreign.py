"""Transactional enqueue: jobs and events inserted on the caller's own connection, inside its transaction.

Connections are told apart by the module of their class, so that no driver is imported that the caller does not use.
asyncpg, psycopg 3 (sync and async) and SQLAlchemy (sync and async connections and sessions) are understood. Keyed
inserts run in a savepoint: a conflict then leaves nothing behind, whatever the caller does with its transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any, Protocol
from uuid import UUID

from headrace.model.errors import HeadraceError, InvalidInputError, StoreUnavailableError
from headrace.model.event import Outgoing
from headrace.model.job import NewJob
from headrace.stores.postgres import event_rows
from headrace.stores.postgres.database import Database
from headrace.stores.postgres.faults import describe
from headrace.stores.postgres.foreign_runners import RUNNERS, kind_of
from headrace.stores.postgres.intake import insert_with
from headrace.stores.postgres.queries import Runner

_ACTIONS = "headrace.after_commit"


class ForeignRunner(Runner, Protocol):
    """Runs statements on a connection that is not ours."""

    def savepoint(self) -> AbstractAsyncContextManager[Any]:
        """Open a savepoint, rolled back when the block raises."""
        ...


class PostgresForeignIntake:
    """The port of transactional enqueue on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def insert_jobs_on(self, connection: Any, jobs: Sequence[NewJob]) -> list[UUID]:
        """Insert on an asyncpg, psycopg or SQLAlchemy connection or session; the jobs exist iff that commits.

        Raises InvalidInputError for a connection of another kind, ConflictError as `JobStore.insert_jobs`,
        KeyHeldError when another transaction holds a key for longer than the lock timeout.
        """
        runner = self._runner(connection)
        try:
            if not any(job.key is not None for job in jobs):
                return await insert_with(runner, jobs, retrying=False)
            async with runner.savepoint():
                return await self._insert_keyed(runner, jobs)
        except HeadraceError:
            raise
        except Exception as error:
            raise _refused(error) from error

    async def insert_events_on(self, connection: Any, events: Sequence[Outgoing]) -> None:
        """Put events into the outbox on such a connection; they leave iff that commits. Raises InvalidInputError."""
        runner = self._runner(connection)
        try:
            await event_rows.insert_with(runner, events)
        except HeadraceError:
            raise
        except Exception as error:
            raise _refused(error, "events") from error

    async def _insert_keyed(self, runner: ForeignRunner, jobs: Sequence[NewJob]) -> list[UUID]:
        """Insert with our bound on waits for keys, and leave the caller's own bound as it was."""
        milliseconds = str(int(self._database.options.lock_timeout / timedelta(milliseconds=1)))
        [[before, _]] = await runner.fetch("save_lock_timeout", timeout=milliseconds)
        ids = await insert_with(runner, jobs, retrying=False)
        await runner.fetch("set_lock_timeout", timeout=before)
        return ids

    def after_commit(self, connection: Any, action: Any) -> bool:
        """Run `action()` once the connection's transaction has committed; False where that cannot be known.

        Only sessions of SQLAlchemy tell after the fact; elsewhere the poll finds the jobs.
        """
        kind = kind_of(connection)
        session = getattr(connection, "sync_session", connection)
        if kind is None or not kind.startswith("sqlalchemy") or not hasattr(session, "get_bind"):
            return False
        _actions_of(session).append(action)
        return True

    def _runner(self, connection: Any) -> ForeignRunner:
        kind = kind_of(connection)
        if kind is None:
            raise InvalidInputError(
                "connection",
                "must be a connection of asyncpg or psycopg 3, or a connection or session of SQLAlchemy",
                f"{type(connection).__module__}.{type(connection).__name__}",
            )
        runner: ForeignRunner = RUNNERS[kind](connection, self._database)
        return runner


def _actions_of(session: Any) -> list[Any]:
    """Return what a session runs after its next commit; its events are listened to from the first time on."""
    if _ACTIONS not in session.info:
        from sqlalchemy import event

        session.info[_ACTIONS] = []
        event.listen(session, "after_commit", _run_actions)
        event.listen(session, "after_soft_rollback", _forget_actions)
    actions: list[Any] = session.info[_ACTIONS]
    return actions


def _run_actions(session: Any) -> None:
    # The event also tells of released savepoints: nothing is committed then.
    if not session.in_nested_transaction():
        actions = session.info[_ACTIONS][:]
        session.info[_ACTIONS].clear()
        for action in actions:
            action()


def _forget_actions(session: Any, previous: Any) -> None:
    if previous.parent is None:
        session.info[_ACTIONS].clear()


def _refused(error: Exception, what: str = "jobs") -> HeadraceError:
    cause = getattr(error, "orig", None) or error
    return StoreUnavailableError(
        f"The {what} could not be inserted on this connection ({describe(cause)}). Check that it is open, that its "
        "transaction is not aborted, and that it leads to the database of HEADRACE_URL."
    )
