"""`[worker]` and `[recovery]`, and what of `[queue]` concerns workers: what each key does when headrace.toml sets it.

`[worker] concurrency` and what calls say in its place: test_engine_worker.py. Processes under a supervisor:
tests/acceptance/test_cli.py. A worker that dies with its lease: tests/faults/test_takeover.py.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headrace import App, Retry
from headrace.cli.root import cli
from headrace.model.errors import JobFailedError
from headrace.model.job import Claim, JobState
from headrace.model.session import NewSession, ProcessId, SessionView
from tests.unit.engine_app import until_final, until_state
from tests.unit.settings_app import app_by, write_settings
from tests.waiting import wait_until

#: What a test waits at most where an interval of 20 ms decides; with its default it would take much longer.
SOON = timedelta(seconds=6)


def watch_claims(app: App, monkeypatch: pytest.MonkeyPatch) -> list[Claim]:
    """Return a list that each claim of the open app is added to."""
    claims: list[Claim] = []
    jobs = app.runtime.stores.jobs
    claim_jobs = jobs.claim_jobs

    async def watched(claim: Claim) -> Any:
        claims.append(claim)
        return await claim_jobs(claim)

    monkeypatch.setattr(jobs, "claim_jobs", watched)
    return claims


async def session_of(app: App) -> SessionView:
    """Return the one session that is alive."""
    [session] = [one for one in await app.runtime.stores.inspect.list_sessions() if one.alive]
    return session


@pytest.mark.parametrize(("batch_size", "slots", "most"), [(2, 6, 2), (100, 3, 3)])
async def test_batch_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch_size: int, slots: int, most: int
) -> None:
    """No claim asks for more, nor for more than there are slots; the slots are filled all the same."""
    app = app_by(tmp_path, {"worker.batch_size": batch_size, "worker.concurrency": slots})
    together = asyncio.Barrier(slots)

    @app.task
    async def meet() -> None:
        await together.wait()

    async with app:
        claims = watch_claims(app, monkeypatch)
        handles = [await meet.enqueue() for _ in range(slots)]
        async with app.worker():
            for handle in handles:
                await handle.result("10s")
        assert max(claim.limit for claim in claims) == most


async def test_poll_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any hint a worker asks for jobs so often."""
    app = app_by(tmp_path, {"worker.poll_interval": "20ms"})
    app.task(name="idle")(lambda: None)
    async with app:
        claims = watch_claims(app, monkeypatch)
        async with app.worker():
            await wait_until(lambda: len(claims) >= 30, SOON)


async def test_heartbeat_interval(tmp_path: Path) -> None:
    """So often a worker renews its lease."""
    app = app_by(tmp_path, {"worker.heartbeat_interval": "20ms"})
    app.task(name="idle")(lambda: None)
    ends = set()

    async def ten_ends() -> bool:
        ends.add((await session_of(app)).expires_at)
        return len(ends) >= 10

    async with app.worker():
        await wait_until(ten_ends, SOON)


async def test_visibility_timeout(tmp_path: Path) -> None:
    """So long is the lease: a session of a dead worker ends by then."""
    app = app_by(tmp_path, {"queue.visibility_timeout": "90s", "worker.heartbeat_interval": "30s"})
    app.task(name="idle")(lambda: None)
    async with app.worker():
        session = await session_of(app)
        assert timedelta(seconds=80) < session.expires_at - session.started_at <= timedelta(seconds=91)


async def test_max_processing_time(tmp_path: Path) -> None:
    """A task without `timeout=` may run that long."""
    app = app_by(tmp_path, {"worker.max_processing_time": "100ms", "queue.max_retries": 0})

    @app.task
    async def hang() -> None:
        await asyncio.Event().wait()

    async with app.worker():
        with pytest.raises(JobFailedError, match=r"ran longer than 0\.1 s"):
            await (await hang.enqueue()).result("10s")


@pytest.mark.parametrize("retries", [0, 2])
async def test_max_retries(tmp_path: Path, retries: int) -> None:
    """A task without `retry=` has that many attempts after its first."""
    app = app_by(tmp_path, {"queue.max_retries": retries})

    @app.task
    async def fail() -> Retry:
        return Retry(delay=0)

    async with app.worker():
        assert (await until_final(app, await fail.enqueue())).failures == 1 + retries


async def test_check_interval(tmp_path: Path) -> None:
    """So often jobs of dead workers are looked for: of five that die in turn each loses its job in time."""
    app = app_by(tmp_path, {"recovery.check_interval": "20ms"})
    # Nobody works them here.
    app.task(name="other", queue="other")(lambda: None)
    app.task(name="lost")(lambda: None)
    async with app.worker(queues=["other"]):
        stores = app.runtime.stores

        async def five_in_turn() -> None:
            for number in range(5):
                handle = await app.find_task("lost").enqueue()
                session = NewSession(ProcessId("dead", number, 1), "dead", {"default": 1}, timedelta(milliseconds=50))
                await stores.sessions.register_session(session)
                [job] = await stores.jobs.claim_jobs(Claim(session.id, "default", 1))
                assert job.id == handle.id
                await until_state(app, handle, JobState.READY, JobState.SCHEDULED)
                await stores.control.cancel_job(job.id)

        # With the default of two seconds it takes ten.
        await asyncio.wait_for(five_in_turn(), SOON.total_seconds())


@pytest.mark.parametrize(("count", "options", "processes"), [(3, [], 3), (3, ["--processes", "2"], 2), (1, [], 0)])
def test_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, options: list[str], processes: int) -> None:
    """`headrace worker` has so many processes under a supervisor, unless its command line says otherwise."""
    started: list[int] = []
    monkeypatch.setattr("headrace.cli.supervisor.supervise", lambda _, count, **more: started.append(count) or 0)
    monkeypatch.setattr("headrace.cli.working.run_worker", lambda _: started.append(0) or 0)
    write_settings(tmp_path, {"worker.count": count})
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["worker", "jobs:app", *options])
    assert (result.exit_code, started) == (0, [processes])
