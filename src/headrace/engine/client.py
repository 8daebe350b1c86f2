"""Enqueueing: concurrent single calls become one insert, and a lost answer never becomes a second job."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from headrace.engine.intake import Intake
from headrace.engine.retrying import with_retries
from headrace.model.errors import ConfigError, KeyHeldError
from headrace.model.event import Outgoing
from headrace.model.job import NewJob
from headrace.ports.stores import Stores

MAX_INSERT = 1_000


@dataclass(slots=True)
class _Waiting:
    job: NewJob
    stored: asyncio.Future[UUID]


class _Lane:
    """Gathers concurrent inserts: one is under way at a time, and what arrives meanwhile goes with the next.

    A caller that is alone inserts by itself, without a task that would cost it two turns of the event loop. Where
    the last insert was shared the next one will be: its first caller waits for those who were answered with it.
    """

    def __init__(self, insert: Callable[[Sequence[NewJob]], Awaitable[list[UUID]]]) -> None:
        self._insert = insert
        self._waiting: list[_Waiting] = []
        self._busy = self._shared = False
        self._sender: asyncio.Task[None] | None = None

    async def enqueue(self, job: NewJob) -> UUID:
        """Insert one job with those of other callers; a refused row fails only its own caller."""
        if not self._busy and not self._shared:
            return await self._send_alone(job)
        waiting = _Waiting(job, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._send_soon()
        return await waiting.stored

    async def _send_alone(self, job: NewJob) -> UUID:
        self._busy = True
        try:
            [stored] = await self._insert([job])
        finally:
            self._busy = False
            if self._waiting:
                self._send_soon()
        return stored

    def _send_soon(self) -> None:
        if not self._busy:
            self._busy = True
            self._sender = asyncio.create_task(self._send_all(), name="headrace-enqueue")

    async def _send_all(self) -> None:
        part: list[_Waiting] = []
        try:
            while self._waiting:
                part, self._waiting = self._waiting[:MAX_INSERT], self._waiting[MAX_INSERT:]
                self._shared = len(part) > 1
                await self._send(part)
        except BaseException as error:
            # The loop is ending: nobody is left waiting.
            for waiting in [*part, *self._waiting]:
                _fail(waiting, error)
            self._waiting = []
            raise
        finally:
            self._busy = False

    async def _send(self, part: list[_Waiting]) -> None:
        try:
            ids = await self._insert([waiting.job for waiting in part])
        except Exception as error:
            await self._refuse(part, error)
            return
        for waiting, job_id in zip(part, ids, strict=True):
            if not waiting.stored.done():
                waiting.stored.set_result(job_id)

    async def _refuse(self, part: list[_Waiting], error: Exception) -> None:
        """Find the row that is refused: by halves, or, where each try waits for somebody's key, all at once."""
        if len(part) == 1 or getattr(error, "transient", False):
            for waiting in part:
                _fail(waiting, error)
        elif isinstance(error, KeyHeldError):
            await asyncio.gather(*(self._send([waiting]) for waiting in part))
        else:
            middle = len(part) // 2
            await self._send(part[:middle])
            await self._send(part[middle:])


class Client:
    """Inserts jobs. Without an `intake` no queue is full or closed."""

    def __init__(self, stores: Stores, intake: Intake | None = None) -> None:
        self._stores = stores
        self._intake = intake
        # Apart: a key that another transaction holds must not make jobs without one wait.
        self._keyed = _Lane(self._insert)
        self._unkeyed = _Lane(self._insert)

    async def enqueue(self, job: NewJob) -> UUID:
        """Insert one job and return the id under which it is stored.

        Raises ConflictError, KeyHeldError, QueueFullError, QueueClosedError, StoreUnavailableError.
        """
        if self._intake is not None and not self._intake.lets_in(job.spec.queue):
            await self._intake.enter_all([job])
        lane = self._unkeyed if job.key is None else self._keyed
        return await lane.enqueue(job)

    async def enqueue_many(self, jobs: Sequence[NewJob]) -> list[UUID]:
        """Insert jobs in one transaction and return the ids under which they are stored. Raises as `enqueue`."""
        if self._intake is not None:
            await self._intake.enter_all(jobs)
        return await self._insert(jobs)

    async def _insert(self, jobs: Sequence[NewJob]) -> list[UUID]:
        return await with_retries(lambda retrying: self._stores.jobs.insert_jobs(jobs, retrying=retrying))

    async def enqueue_on(self, connection: Any, jobs: Sequence[NewJob], *, hint: bool) -> list[UUID]:
        """Insert jobs inside the caller's transaction; with `hint`, a hint follows the commit if that is seen.

        Raises as `enqueue`. A full queue refuses at once here: a transaction must not be held open to wait for room.
        """
        foreign = self._stores.foreign
        if foreign is None:
            raise ConfigError(
                "this store cannot enqueue on your connection: it is not your database. Use a PostgreSQL store"
            )
        if self._intake is not None:
            await self._intake.enter_all(jobs, waits=False)
        ids = await foreign.insert_jobs_on(connection, jobs)
        if hint:
            foreign.after_commit(connection, lambda: self._hint(jobs))
        return ids

    async def emit_on(self, connection: Any, events: Sequence[Outgoing], *, hint: bool) -> None:
        """Put events into the outbox inside the caller's transaction; with `hint` as `enqueue_on`."""
        foreign = self._stores.foreign
        if foreign is None:
            raise ConfigError(
                "this store cannot take events on your connection: it is not your database. Use a PostgreSQL store"
            )
        await foreign.insert_events_on(connection, events)
        if hint:
            foreign.after_commit(connection, lambda: self._stores.notifier.hint("events"))

    def _hint(self, jobs: Sequence[NewJob]) -> None:
        for queue in {job.spec.queue for job in jobs}:
            self._stores.notifier.hint(f"queue:{queue}")


def _fail(waiting: _Waiting, error: BaseException) -> None:
    if not waiting.stored.done():
        waiting.stored.set_exception(error)
