"""Acks and claims: one statement for many, and a store that fails, refuses or surprises."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import UUID

import pytest

from headrace import App
from headrace.engine import acks
from headrace.engine.worker import Worker
from headrace.model.batch import BatchState
from headrace.model.errors import StoreUnavailableError
from headrace.model.job import Claim, ClaimedJob, Completion, JobState
from tests.unit.engine_app import QUICK, quick_app, until_final
from tests.waiting import wait_until

#: A poll so long that only a hint, or a slot that becomes free, can explain a claim.
PATIENT = {"poll_interval": QUICK.worker.poll_interval * 1_000}


@pytest.fixture
def app() -> App:
    """Return an app with one task."""
    app = quick_app(**PATIENT)

    @app.task
    async def echo(value: Any) -> Any:
        return value

    return app


@pytest.fixture
async def worker(app: App) -> AsyncIterator[Worker]:
    """Work the app's queue with 100 slots."""
    async with app.worker(concurrency=100) as worker:
        yield worker


Complete = Any


def patch_completions(app: App, monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    """Let `change(complete, session, completions)` stand between worker and store."""
    jobs = app.runtime.stores.jobs
    complete = jobs.complete_jobs

    async def changed(session: UUID, completions: Sequence[Completion]) -> list[UUID]:
        answer: list[UUID] = await change(complete, session, completions)
        return answer

    monkeypatch.setattr(jobs, "complete_jobs", changed)
    monkeypatch.setattr(acks, "RETRY_SECONDS", 0.005)


async def test_endings_that_come_together_are_one_statement(app: App, worker: Worker) -> None:
    """Hundreds of jobs that end together are recorded by few statements, each job once."""
    batch = await app.submit(app.find_task("echo"), list(range(500)))
    await batch.wait(20)
    assert worker.telemetry.value("headrace.jobs.complete") == 500
    assert worker.telemetry.value("headrace.jobs.complete.statements") <= 100
    assert worker.telemetry.value("headrace.jobs.refused") == 0


async def test_a_lone_ending_is_recorded_at_once(app: App, worker: Worker) -> None:
    """A job that ends alone waits for no company: enqueue to result takes milliseconds."""
    echo = app.find_task("echo")
    await (await echo.enqueue(0)).result(10)
    loop = asyncio.get_running_loop()
    fastest = 1.0
    for number in range(20):
        started = loop.time()
        await (await echo.enqueue(number)).result(10)
        fastest = min(fastest, loop.time() - started)
    assert fastest < 0.02


async def test_an_ending_is_sent_until_the_store_takes_it(
    app: App, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that is away for a moment loses no ending, and the handler does not run again."""
    away = 3

    async def failing(complete: Complete, session: UUID, completions: Sequence[Completion]) -> Any:
        nonlocal away
        away -= 1
        if away >= 0:
            raise StoreUnavailableError("away")
        return await complete(session, completions)

    patch_completions(app, monkeypatch, failing)
    job = await app.find_task("echo").enqueue("x")
    assert await job.result(10) == "x"
    assert (await until_final(app, job)).attempt == 1


async def test_a_lost_answer_to_an_ending_changes_nothing(
    app: App, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ending that was recorded, but whose answer was lost, is sent again and has no second effect."""
    lost = True

    async def cut(complete: Complete, session: UUID, completions: Sequence[Completion]) -> Any:
        nonlocal lost
        answer = await complete(session, completions)
        if lost:
            lost = False
            raise StoreUnavailableError("connection lost after the commit")
        return answer

    patch_completions(app, monkeypatch, cut)
    batch = await app.submit(app.find_task("echo"), [1])
    view = await batch.wait(10)
    assert view.state is BatchState.CLOSED
    assert [item.result async for item in batch.results()] == [1]


async def test_an_ending_the_store_refuses_fails_only_its_job(
    app: App, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A result that the store cannot take fails its own job with that error; those that ended with it succeed."""

    async def picky(complete: Complete, session: UUID, completions: Sequence[Completion]) -> Any:
        if any(done.result == '"bad"' for done in completions):
            raise ValueError("this store takes nothing bad")
        return await complete(session, completions)

    patch_completions(app, monkeypatch, picky)
    batch = await app.submit(app.find_task("echo"), ["a", "b", "bad", "c"])
    await batch.wait(10)
    items = sorted([item async for item in batch.results()], key=lambda item: item.index)
    assert [item.result for item in items] == ["a", "b", None, "c"]
    assert items[2].error is not None
    assert (items[2].error.kind, items[2].error.message) == ("ValueError", "this store takes nothing bad")
    assert await (await app.find_task("echo").enqueue("next")).result(10) == "next"


async def test_a_store_that_can_take_no_ending_does_not_stop_the_worker(
    app: App, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When not even the failure of one job can be recorded, the other jobs go on."""
    stuck: list[UUID] = []

    async def broken(complete: Complete, session: UUID, completions: Sequence[Completion]) -> Any:
        if any(done.job_id in stuck for done in completions):
            raise ValueError("no")
        return await complete(session, completions)

    patch_completions(app, monkeypatch, broken)
    gate = asyncio.Event()

    @app.task
    async def gated() -> None:
        await gate.wait()

    job = await gated.enqueue()
    stuck.append(job.id)
    gate.set()
    assert await (await app.find_task("echo").enqueue("next")).result(10) == "next"
    await wait_until(lambda: worker.quiet)
    assert await job.status() is JobState.RUNNING


async def test_a_claim_that_fails_is_tried_again(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a store that is away nor a surprise ends claiming."""
    faults: list[Exception] = [StoreUnavailableError("away"), RuntimeError("a bug")]
    app = quick_app()
    task = app.task(name="one")(lambda: 1)
    async with app:
        claim = app.runtime.stores.jobs.claim_jobs

        async def failing(request: Claim) -> list[ClaimedJob]:
            if faults:
                raise faults.pop()
            return await claim(request)

        monkeypatch.setattr(app.runtime.stores.jobs, "claim_jobs", failing)
        async with app.worker():
            assert await (await task.enqueue()).result(10) == 1
    assert faults == []


async def test_a_hint_makes_the_claim_come_at_once(app: App, worker: Worker) -> None:
    """A worker that polls every 20 s starts a job at once, because it hears of it; and counts why it woke."""
    await wait_until(lambda: worker.session is not None)
    assert await (await app.find_task("echo").enqueue(1)).result(5) == 1
    assert worker.telemetry.value("headrace.wakeups.hint") >= 1


async def test_without_hints_the_poll_finds_the_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every hint is lost jobs run all the same, and the wake-up is counted as a poll."""
    app = quick_app()
    task = app.task(name="one")(lambda: 1)
    async with app:
        monkeypatch.setattr(app.runtime.stores.notifier, "hint", lambda topic: None)
        async with app.worker() as worker:
            assert await (await task.enqueue()).result(10) == 1
            job = await task.enqueue()
            assert await job.result(10) == 1
    assert worker.telemetry.value("headrace.wakeups.hint") == 0
    assert worker.telemetry.value("headrace.wakeups.poll") >= 1


async def test_a_worker_never_holds_more_jobs_than_slots(app: App) -> None:
    """However many jobs wait, no more are claimed than can run, and a freed slot is filled at once."""
    running, most = 0, 0
    gate = asyncio.Event()

    @app.task(queue="narrow")
    async def occupy() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await gate.wait()
        running -= 1

    async with app.worker(queues={"narrow": 3}):
        batch = await app.submit(occupy, [{}] * 30, spread=True)
        await wait_until(lambda: running == 3)
        progress = await batch.progress()
        assert (progress.running, progress.waiting) == (3, 27)
        gate.set()
        await batch.wait(10)
    assert most == 3
