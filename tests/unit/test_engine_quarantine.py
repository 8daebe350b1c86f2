"""Suspects take turns: a crash makes suspects of a whole worker's jobs, and a child for each would cost too much."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from headrace import App, wiring
from headrace.engine import shift
from headrace.model.job import Claim, ClaimedJob, JobState
from headrace.model.session import NewSession, ProcessId
from headrace.ports.executor import Call
from tests.unit.engine_tasks import app as tasks_app
from tests.unit.engine_tasks import suspect
from tests.waiting import wait_until

SUSPECTS = 3 * shift.MAX_ALONE


class Rooms:
    """Stands for children: each call waits until the test lets it go."""

    def __init__(self) -> None:
        self.inside = 0
        self.most = 0
        self.go_on = asyncio.Event()

    async def run(self, call: Call) -> str:
        """Be in a room until the test says so."""
        self.inside += 1
        self.most = max(self.most, self.inside)
        await self.go_on.wait()
        self.inside -= 1
        return f"attempt {call.job.attempt}"

    async def close(self) -> None:
        """Have nothing to close."""


async def crash_all(app: App) -> None:
    """Let a worker claim every job and die."""
    stores = app.runtime.stores
    session = NewSession(ProcessId("elsewhere", 1, 1), "elsewhere", {"default": SUSPECTS}, timedelta(hours=1))
    await stores.sessions.register_session(session)
    assert len(await stores.jobs.claim_jobs(Claim(session.id, "default", SUSPECTS))) == SUSPECTS
    await stores.sessions.expire_sessions([session.id])
    await stores.jobs.rescue_jobs(limit=SUSPECTS)


async def test_suspects_take_turns_and_hold_no_slots(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """At most four run at once; the others wait without a slot and uncharged, and other jobs go on."""
    rooms, log = Rooms(), str(tmp_path / "log")
    monkeypatch.setattr(wiring, "ProcessExecutor", lambda *_args, **_options: rooms)
    monkeypatch.setattr(shift, "until_room", lambda _job: timedelta(milliseconds=10))
    async with tasks_app as app:
        batch = await app.submit(suspect, [{"log": log, "deadly": False}] * SUSPECTS, spread=True)
        await crash_all(app)
        await crash_all(app)
        async with app.worker(concurrency=SUSPECTS) as worker:
            await wait_until(lambda: rooms.inside == shift.MAX_ALONE)
            healthy = await suspect.enqueue(log, False)
            assert str(await healthy.result(10)).startswith("survived in ")
            assert worker.session is not None
            await wait_until(lambda: worker.session.running == shift.MAX_ALONE)  # type: ignore[union-attr]
            rooms.go_on.set()
            await batch.wait(10)
            jobs = await app.runtime.stores.inspect.list_jobs(batch_id=batch.id, limit=SUSPECTS)
    assert rooms.most == shift.MAX_ALONE
    assert [(job.state, job.failures, job.crashes) for job in jobs] == [(JobState.SUCCEEDED, 0, 2)] * SUSPECTS


def test_a_suspect_waits_longer_the_longer_the_rooms_are_taken() -> None:
    """About a second at first; after many tries half a minute, so that the store is not asked in vain for ever."""

    def wait(attempt: int) -> float:
        job = ClaimedJob(
            uuid4(), "t", "q", "{}", attempt=attempt, failures=0, crashes=2, max_attempts=1, timeout=None,
            cancel_requested=False,
        )  # fmt: skip
        return shift.until_room(job).total_seconds()

    assert 0.5 <= wait(3) <= 1.5
    assert 15 <= wait(1_000) <= 45
