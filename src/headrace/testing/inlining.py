"""Inline mode: who enqueues waits until the job has run, and gets its error."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import UUID

from headrace.app import App
from headrace.engine.batches import Batches, Texts
from headrace.engine.client import Client
from headrace.engine.intake import Intake
from headrace.model.batch import BatchState, NewBatch
from headrace.model.durations import parse_duration
from headrace.model.job import JobState, JobView, NewJob
from headrace.ports.stores import Stores
from headrace.testing.apps import tables_of, within

#: Jobs that enqueue others wait for those in their slots.
_SLOTS = 1_000
_LOOK_SECONDS = 0.002
_TIMED = (JobState.SCHEDULED, JobState.PARKED)


@asynccontextmanager
async def inline(app: App, *, timeout: float | str | timedelta = "30s") -> AsyncIterator[App]:
    """Open an app in memory, and run every job as it is enqueued: `enqueue` returns once it has ended.

    It raises what `handle.result()` would: JobFailedError with the error of the handler, after all attempts. Backoffs,
    delays and `run_at` are not waited for. `enqueue_many` raises the first error, in order; `app.submit` returns a
    batch that has closed, and raises nothing: errors are its items'. A job that waits for a signal is left as it waits,
    and runs on when the signal comes. Runs of workflows start as ever: wait for `run.result()`. All rules of the store
    hold, limits too.

    Raises ResultTimeoutError, from what enqueues, for a job that takes longer than `timeout` of real time; ConfigError
    for an app that is not in memory.

    >>> import asyncio
    >>> from headrace import App, Fail, JobFailedError
    >>> from headrace.testing import in_memory, inline
    >>> app = App()
    >>> @app.task
    ... async def pay(cents: int) -> int | Fail:
    ...     return cents if cents > 0 else Fail("nothing to pay")
    >>> async def work() -> None:
    ...     async with inline(app):
    ...         print(await (await pay.enqueue(5)).status())
    ...         try:
    ...             await pay.enqueue(0)
    ...         except JobFailedError as error:
    ...             print(str(error).partition("failed ")[2])
    >>> with in_memory(app):
    ...     asyncio.run(work())
    succeeded
    after 1 attempt: failed: nothing to pay
    """
    tables_of(app)
    patience = parse_duration(timeout, field="timeout")
    async with app.worker(concurrency=_SLOTS, grace="1s"):
        runtime, ends = app.runtime, _Ends(app, patience)
        usual = runtime.client, runtime.batches
        runtime.client = _InlineClient(runtime.stores, runtime.intake, ends.of_jobs)
        runtime.batches = _InlineBatches(runtime.stores, runtime.intake, ends.of_batch)
        try:
            yield app
        finally:
            runtime.client, runtime.batches = usual


class _InlineClient(Client):
    """Waits for the end of what it inserts."""

    def __init__(self, stores: Stores, intake: Intake, end: Callable[[Sequence[UUID]], Awaitable[None]]) -> None:
        super().__init__(stores, intake)
        self._end = end

    async def enqueue(self, job: NewJob) -> UUID:
        job_id = await super().enqueue(job)
        await self._end([job_id])
        return job_id

    async def enqueue_many(self, jobs: Sequence[NewJob]) -> list[UUID]:
        ids = await super().enqueue_many(jobs)
        await self._end(ids)
        return ids


class _InlineBatches(Batches):
    """Waits for the end of a batch that it makes."""

    def __init__(self, stores: Stores, intake: Intake, end: Callable[[UUID, str | None], Awaitable[None]]) -> None:
        super().__init__(stores, intake)
        self._end = end

    async def submit(self, batch: NewBatch, texts: Texts) -> UUID:
        batch_id = await super().submit(batch, texts)
        await self._end(batch_id, None if batch.on_close is None else batch.on_close.task)
        return batch_id


class _Ends:
    """Waits for the ends of jobs while time passes at once."""

    def __init__(self, app: App, patience: timedelta) -> None:
        self._app = app
        self._tables = tables_of(app)
        self._patience = patience

    async def of_jobs(self, ids: Sequence[UUID]) -> None:
        """Wait until jobs have ended or wait for a signal; raise the error of the first that failed."""
        meant = frozenset(ids)
        await self._wait(lambda job: job.id in meant)
        ended = await self._app.runtime.stores.inspect.final_jobs(ids)
        for job_id in ids:
            if job_id in ended and ended[job_id].state is not JobState.SUCCEEDED:
                await self._app.job(job_id).result()

    async def of_batch(self, batch_id: UUID, callback: str | None) -> None:
        """Wait until a batch has closed and its callback has ended, or until it waits for signals."""
        await self._wait(lambda job: job.batch_id == batch_id)
        inspect = self._app.runtime.stores.inspect
        progress = await inspect.batch_progress(batch_id)
        if progress.waiting or progress.running:
            return
        async with within(self._patience, list):
            while (view := await inspect.get_batch(batch_id)) is not None and view.state is not BatchState.CLOSED:  # noqa: ASYNC110 - tables have no event
                await asyncio.sleep(_LOOK_SECONDS)
        await self._wait(lambda job: job.task == callback and job.args["args"][:1] == [str(batch_id)])

    async def _wait(self, of: Callable[[JobView], bool]) -> None:
        """Wait until jobs have ended or wait for a signal; the time that all of them wait for passes at once."""
        async with within(self._patience, lambda: self._tables.unended(of)):
            while jobs := self._tables.unended(of):
                due = [job.run_at for job in jobs if job.run_at and job.state in _TIMED]
                if len(due) == len(jobs):
                    now = self._app.runtime.means.clock.now()
                    await self._tables.pass_time(max(min(due) - now, timedelta()))
                await asyncio.sleep(_LOOK_SECONDS)
