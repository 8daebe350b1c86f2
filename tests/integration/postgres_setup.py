"""What the integration tests of the PostgreSQL store share: databases, jobs and workers in few words."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from headrace.model.job import Claim, ClaimedJob, Completion, JobSpec, JobState, NewJob
from headrace.model.session import NewSession, ProcessId
from headrace.ports.stores import Stores
from headrace.stores.postgres.database import Database, DatabaseOptions, Transaction
from headrace.stores.postgres.migrate import apply_to
from tests.backends.postgres import empty_schema, fresh_schema, new_schema_name, open_test_stores, stores_on
from tests.backends.server import shared_server

ARGS = '{"args":[1],"kwargs":{}}'
SPEC = JobSpec("work")
LEASE = timedelta(seconds=60)

__all__ = ["connection", "new_schema_name", "open_test_stores", "shared_server"]


@asynccontextmanager
async def connection(dsn: str | None = None) -> AsyncIterator[Any]:
    """Open a bare connection, as an application beside Headrace would."""
    opened = await asyncpg.connect(dsn or shared_server().dsn)
    try:
        yield opened
    finally:
        await opened.close()


@asynccontextmanager
async def database(*, fresh: bool = False, **options: Any) -> AsyncIterator[Database]:
    """Open a migrated database of its own schema; `fresh`: one without any statistics."""
    async with fresh_schema() if fresh else empty_schema() as schema:
        opened = Database(DatabaseOptions(shared_server().dsn, schema=schema, **options))
        try:
            await apply_to(opened)
            yield opened
        finally:
            await opened.close()


@asynccontextmanager
async def schema_stores(**options: Any) -> AsyncIterator[tuple[str, Stores]]:
    """Open stores by the server's clock and tell the name of their schema."""
    async with empty_schema() as schema, stores_on(schema, None, **options) as stores:
        yield schema, stores


def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which what is sent from now on is added, but for hints; "BEGIN" for a transaction of several."""
    sent: list[str] = []
    fetch, run = Transaction.fetch, Database.run

    async def note_fetch(self: Transaction, name: str, /, **values: Any) -> Any:
        if name != "notify":
            sent.append(name)
        return await fetch(self, name, **values)

    async def note_run(self: Database, work: Any) -> Any:
        sent.append("BEGIN")
        return await run(self, work)

    monkeypatch.setattr(Transaction, "fetch", note_fetch)
    monkeypatch.setattr(Database, "run", note_run)
    return sent


async def register(stores: Stores, lease: timedelta = LEASE) -> UUID:
    """Register a worker's session."""
    session = NewSession(ProcessId("host", 1, 1), "host.example", {"default": 10}, lease)
    await stores.sessions.register_session(session)
    return session.id


async def enqueue(stores: Stores, count: int, spec: JobSpec = SPEC) -> list[UUID]:
    """Insert jobs of one specification."""
    return await stores.jobs.insert_jobs([NewJob(spec, ARGS) for _ in range(count)])


async def claim(stores: Stores, session: UUID, limit: int = 10) -> list[ClaimedJob]:
    """Claim jobs of the default queue."""
    return await stores.jobs.claim_jobs(Claim(session, "default", limit))


async def admit(stores: Stores, session: UUID, limit: int = 10, *, queue: str = "gated") -> list[ClaimedJob]:
    """Admit jobs of a gated queue."""
    return (await stores.admission.admit_jobs(Claim(session, queue, limit))).jobs


def done(jobs: Sequence[ClaimedJob], state: JobState = JobState.SUCCEEDED) -> list[Completion]:
    """Return the completions of claimed jobs."""
    return [Completion(job.id, job.attempt, state, batch_id=job.batch_id) for job in jobs]
