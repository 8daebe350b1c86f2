"""What the board of statuses is told: what the store did, and nothing that it refused."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest

from headrace.engine.acks import Acks
from headrace.engine.telemetry import Telemetry
from headrace.engine.workflows.boards import RunNotes
from headrace.model.errors import StoreUnavailableError
from headrace.model.graph.nodes import RetryRule
from headrace.model.job import Claim, Completion, JobSpec, JobState, NewJob
from headrace.model.run import Effects, Level, NewRun, NodeEnding, NodeState, RunChange, RunEnding, RunState
from headrace.model.session import NewSession, ProcessId
from headrace.stores.memory import open_memory_stores
from tests.unit.engine_app import quick_app
from tests.waiting import wait_until

HOUR = timedelta(hours=1)


class Board:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.changes: list[RunChange] = []

    async def note_changes(self, changes: Sequence[RunChange]) -> None:
        """Keep them."""
        self.changes += changes


async def told_of_an_end(*, cancelled: bool) -> list[RunChange]:
    """Return what the board is told when the last job of a run ends, of one that is being cancelled perhaps."""
    stores, board = open_memory_stores(), Board()
    session = NewSession(ProcessId("host", 1, 1), "host", {"default": 1}, HOUR)
    await stores.sessions.register_session(session)
    run = NewRun(
        workflow="w", version=1, snapshot="s", graph="{}", input="1", context="{}", level=Level.NODE, reason="", jobs=()
    )
    run.jobs = (NewJob(JobSpec("work"), "{}", run_id=run.id, node="a"),)
    await stores.runs.start_run(run)
    [job] = await stores.jobs.claim_jobs(Claim(session.id, "default", 1))
    if cancelled:
        await stores.runs.cancel_run(run.id)
    effects = Effects(run.id, (NodeEnding("a", NodeState.SUCCESS, "1"),), ending=RunEnding(RunState.SUCCEEDED, "1"))
    completion = Completion(job.id, job.attempt, JobState.SUCCEEDED, effects=effects)
    assert await stores.jobs.complete_jobs(session.id, [completion]) == [job.id]
    notes = RunNotes(board, stores.runs)  # type: ignore[arg-type]
    notes.note([completion], {})
    await notes.close()
    return board.changes


async def test_the_end_of_a_run_is_told_as_the_store_has_it() -> None:
    """What ends beside a cancel of its run ends itself, and not the run."""
    [whole], [cancelled] = await told_of_an_end(cancelled=False), await told_of_an_end(cancelled=True)
    assert (whole.nodes, whole.state) == ({"a": NodeState.SUCCESS}, RunState.SUCCEEDED)
    assert (cancelled.nodes, cancelled.state) == ({"a": NodeState.SUCCESS}, None)


async def test_a_late_end_of_a_node_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that runs elsewhere by now: the store refuses what its first attempt ended with, and no one is told."""
    app, board = quick_app(heartbeat_interval="4s"), Board()
    begun, go_on = asyncio.Event(), asyncio.Event()

    @app.task
    async def fail() -> None:
        begun.set()
        await go_on.wait()
        raise ValueError("too late")

    once = fail.s().options(retry=RetryRule("fixed", max_tries=1))
    app.workflow("flow", once, tags=(f"schedule:{Level.NODE}",))
    async with app:
        monkeypatch.setattr(app.runtime.means.notes, "_board", board)
        stores = app.runtime.stores
        async with app.worker(grace="10ms") as worker:
            run = await app.start("flow")
            await begun.wait()
            shift = worker.session
            assert shift is not None
            await stores.sessions.expire_sessions([shift.id])
            await stores.jobs.rescue_jobs(limit=10)
            session = NewSession(ProcessId("elsewhere", 1, 1), "elsewhere", {"default": 1}, HOUR)
            await stores.sessions.register_session(session)
            [again] = await stores.jobs.claim_jobs(Claim(session.id, "default", 1))
            assert again.attempt == 2
            go_on.set()
            await wait_until(lambda: shift.quiet)
        assert (await run.view()).state is RunState.RUNNING
    assert board.changes == []


class Jobs:
    """A job store that takes what it is told to; before that it may be away."""

    def __init__(self, taken: list[UUID], away: int) -> None:
        self.taken, self.away = taken, away

    async def complete_jobs(self, _session: UUID, _completions: Sequence[Completion]) -> list[UUID]:
        """Take some."""
        if self.away:
            self.away -= 1
            raise StoreUnavailableError
        return self.taken


async def sent(part: list[Completion], taken: list[UUID], away: int = 0) -> list[Any]:
    """Return what was sent and what of it counts as accepted, where the store takes these jobs."""
    calls: list[Any] = []
    no_claims: Any = SimpleNamespace(offer=lambda: None)
    stores: Any = SimpleNamespace(jobs=Jobs(taken, away), notifier=SimpleNamespace(hint=lambda _topic: None))
    acks = Acks(
        stores, uuid4(), Telemetry(), claims=no_claims, running_batches=set, on_sent=lambda *call: calls.append(call)
    )
    for completion in part:
        acks.put(completion)
    acks.start()
    await acks.drain()
    await acks.stop()
    return calls


def ended(attempt: int = 1, job_id: UUID | None = None) -> Completion:
    """Return the end of a job."""
    return Completion(job_id or uuid4(), attempt, JobState.SUCCEEDED)


async def test_what_the_store_refused_is_sent_and_not_accepted() -> None:
    """Also of a job that ended here twice: its later attempt is the one that the store took."""
    taken, refused = ended(2), ended()
    late = ended(1, taken.job_id)
    part = [taken, refused, late]
    assert await sent(part, [taken.job_id]) == [(part, [taken])]


async def test_after_a_lost_answer_only_what_the_repeat_took_is_accepted() -> None:
    """What the first statement may have done is not known."""
    first, second = ended(), ended()
    assert await sent([first, second], [second.job_id], away=1) == [([first, second], [second])]
