"""Handlers in child processes: what they may do, how they are killed, and jobs that kill them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from headrace import App
from headrace.engine.worker import Worker
from headrace.model.errors import InvalidInputError, JobFailedError
from headrace.model.job import JobState
from tests.unit.engine_app import crash_with, quick_app, until_final, view_of
from tests.unit.engine_tasks import app as tasks_app
from tests.unit.engine_tasks import (
    die,
    die_once,
    end_with,
    facts,
    facts_async,
    noisy,
    report,
    spin,
    suspect,
)
from tests.waiting import wait_until


@pytest.fixture
async def app() -> AsyncIterator[App]:
    """Open the app of the tasks on an empty store."""
    async with tasks_app:
        yield tasks_app


@pytest.fixture
async def worker(app: App) -> AsyncIterator[Worker]:
    """Work the app."""
    async with app.worker(grace=0) as worker:
        yield worker


def alive(pid: int) -> bool:
    """Return whether a process runs (a zombie does not)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


async def test_a_cpu_handler_runs_in_a_child_that_is_kept(app: App, worker: Worker) -> None:
    """Sync and async handlers run in a child of the worker, one child after another, with types and context intact."""
    first = await (await facts.enqueue()).result(30)
    second = await (await facts.enqueue()).result(30)
    third = await (await facts_async.enqueue()).result(30)
    assert (first.parent, first.main_thread) == (os.getpid(), False)
    assert first.pid == second.pid == third["pid"] != os.getpid()
    assert (third["resources"], third["attempt"]) == (f"resources of {first.pid}", 1)
    assert 200 < third["left"] <= 300


ENDINGS = {
    "snooze": (JobState.SUCCEEDED, 2, ""),
    "retry": (JobState.FAILED, 3, "retry"),
    "fail": (JobState.FAILED, 1, "failed"),
    "cancel": (JobState.CANCELLED, 1, "cancelled"),
    "raise": (JobState.FAILED, 3, "ValueError"),
    "exit": (JobState.FAILED, 3, "SystemExit"),
    "stop iteration": (JobState.FAILED, 3, "RuntimeError"),
    "object": (JobState.FAILED, 1, "invalid_input"),
    "step": (JobState.FAILED, 1, "config"),
}


async def test_endings_in_a_child_are_those_of_any_handler(app: App) -> None:
    """Outcomes, errors and retries mean the same in a child, and one child survives them all."""
    async with app.worker(concurrency=1):
        pid = (await (await facts.enqueue()).result(30)).pid
        for how, expected in ENDINGS.items():
            view = await until_final(app, await end_with.enqueue(how))
            assert (view.state, view.attempt, view.error.kind if view.error else "") == expected, how
            assert view.crashes == 0
        assert (await (await facts.enqueue()).result(30)).pid == pid


async def test_a_handler_may_print_and_read(app: App, worker: Worker) -> None:
    """What a handler, or a program it starts, prints or reads does not disturb the protocol of its child."""
    assert await (await noisy.enqueue()).result(30) == ""


async def test_a_timeout_kills_the_child_and_what_it_started(app: App, tmp_path: Path) -> None:
    """A handler that hears nothing is killed at its timeout, with the programs it started; the worker goes on."""
    marker = tmp_path / "pids"
    async with app.worker(concurrency=1, grace=0):
        warm = (await (await facts.enqueue()).result(30)).pid
        job = await spin.enqueue(str(marker))
        with pytest.raises(JobFailedError, match=r"timeout: ran longer than 1 s"):
            await job.result(30)
        pids = [int(pid) for pid in marker.read_text().split()]
        assert pids[0] == warm
        await wait_until(lambda: not any(alive(pid) for pid in pids))
        assert (await (await facts.enqueue()).result(30)).pid not in pids


async def test_a_cancel_kills_the_child(app: App, worker: Worker, tmp_path: Path) -> None:
    """Cancelling a running job ends its child at once, whatever the handler does."""
    marker = tmp_path / "pids"
    job = await spin.options(timeout="5m").enqueue(str(marker))
    await wait_until(lambda: marker.exists() and marker.read_text())
    await job.cancel()
    view = await until_final(app, job)
    assert view.state is JobState.CANCELLED
    await wait_until(lambda: not any(alive(int(pid)) for pid in marker.read_text().split()))


async def test_progress_in_a_child_renews_the_stall_timer(app: App) -> None:
    """A handler that reports runs on beyond its stall timeout, and is killed once it falls silent that long."""
    async with app.worker(concurrency=1, grace=0):
        await (await facts.enqueue()).result(30)
        job = await report.enqueue(1.2)
        started = asyncio.get_running_loop().time()
        with pytest.raises(JobFailedError, match="no activity for"):
            await job.result(40)
    assert asyncio.get_running_loop().time() - started > 2.1


async def test_a_job_that_kills_its_child_is_a_poison(app: App, worker: Worker, tmp_path: Path) -> None:
    """Three crashes of its own child make a job a dead letter of kind `poison`; its failures are not touched."""
    log = tmp_path / "log"
    job = await die.enqueue(str(log))
    with pytest.raises(JobFailedError, match="poison"):
        await job.result(30)
    view = await view_of(app, job)
    assert (view.state, view.failures, len(log.read_text().split())) == (JobState.FAILED, 0, 3)
    records = await app.runtime.stores.inspect.get_attempts(job.id)
    assert [record.outcome for record in records][:2] == ["crashed", "crashed"]


async def test_an_at_most_once_job_that_kills_its_child_is_not_run_again(
    app: App, worker: Worker, tmp_path: Path
) -> None:
    """The crash of its child ends an at-most-once job."""
    log = tmp_path / "log"
    with pytest.raises(JobFailedError, match="executor_crashed"):
        await (await die_once.enqueue(str(log))).result(30)
    assert len(log.read_text().split()) == 1


async def test_a_suspect_runs_alone_and_neighbours_are_never_convicted(app: App, tmp_path: Path) -> None:
    """After two crashes of its workers a job runs alone in a child: only the deadly one is convicted."""
    logs = {deadly: tmp_path / str(deadly) for deadly in (True, False)}
    jobs: dict[bool, Any] = {}
    for deadly, log in logs.items():
        job = jobs[deadly] = await suspect.enqueue(str(log), deadly)
        for _ in range(2):
            await crash_with(app, job)
        if deadly:
            async with app.worker():
                view = await until_final(app, job)
            assert view.error is not None
            assert (view.state, view.error.kind, view.crashes) == (JobState.FAILED, "poison", 5)
    async with app.worker():
        result = await jobs[False].result(30)
    pids = {deadly: set(log.read_text().split()) for deadly, log in logs.items()}
    assert (len(pids[True]), len(pids[False])) == (3, 1)
    assert str(os.getpid()) not in pids[True] | pids[False]
    assert result == f"survived in {pids[False].pop()}"


async def test_a_job_with_fewer_crashes_runs_where_it_belongs(app: App, tmp_path: Path) -> None:
    """One crash makes nobody suspect: the job runs in the worker, as its task says."""
    job = await suspect.enqueue(str(tmp_path / "log"), False)
    await crash_with(app, job)
    async with app.worker():
        assert await job.result(30) == f"survived in {os.getpid()}"


async def test_a_suspect_that_no_child_can_import_runs_in_the_worker() -> None:
    """A nested function cannot run alone; it is not convicted for that."""
    app = quick_app()

    @app.task
    async def nested() -> str:
        return "innocent"

    async with app:
        job = await nested.enqueue()
        for _ in range(2):
            await crash_with(app, job)
        async with app.worker():
            assert await job.result(30) == "innocent"


async def test_children_end_with_their_worker(app: App, tmp_path: Path) -> None:
    """A worker that stops leaves no child behind, busy or idle, and its running job is released."""
    marker = tmp_path / "pids"
    async with app.worker(grace=0):
        pids = [(await (await facts.enqueue()).result(30)).pid]
        job = await spin.options(timeout="5m").enqueue(str(marker))
        await wait_until(lambda: marker.exists() and marker.read_text())
        pids += [int(pid) for pid in marker.read_text().split()]
    await wait_until(lambda: not any(alive(pid) for pid in pids))
    view = await view_of(app, job)
    assert (view.state, view.failures, view.crashes) == (JobState.READY, 0, 0)


def test_an_argument_for_a_child_is_checked_as_any_other() -> None:
    """`cpu=True` changes nothing about what a call accepts."""
    with pytest.raises(InvalidInputError, match="do not fit"):
        tasks_app.sync(facts.enqueue(1))  # type: ignore[call-arg]
    tasks_app.sync.close()
