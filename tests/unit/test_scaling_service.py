"""The scale signal as it is told: over HTTP, as metrics and by the command line; and its settings."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from headrace import App
from headrace.engine.llm_session import CallerSession
from headrace.model.errors import ConfigError
from headrace.model.job import Claim, Completion, JobSpec, JobState, NewJob
from headrace.model.scale_values import ScaleReason, ScalingRule
from headrace.model.session import NewSession, ProcessId
from headrace.model.stats import QueueStats
from headrace.settings import load_settings
from headrace.stores.memory.inspect import MemoryInspect
from headrace.testing.provider import ScriptedProvider
from headrace.wiring import gateway
from headrace.wiring.scaling import scale_signals
from tests.conformance.scenario import ARGS
from tests.unit.cli_runner import CommandLine, command_line
from tests.unit.service_calls import code_of, served, shop
from tests.waiting import wait_until

LEASE = timedelta(minutes=5)


@pytest.fixture
def headrace(monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """The command line."""
    with command_line(monkeypatch) as line:
        yield line


async def test_the_service_tells_of_one_queue_and_of_all() -> None:
    """With the figures that it was made of; a queue that is only declared is one."""
    app = shop()
    app.queue("spare", max_slots=30)
    async with served(app, worker=False) as client:
        await app.runtime.stores.jobs.insert_jobs([NewJob(JobSpec("double"), ARGS) for _ in range(45)])
        answer = await client.get("/api/v1/scale", params={"queue": "default"})
        assert answer.status_code == 200
        [signal] = answer.json()["queues"]
        assert (signal["queue"], signal["wanted_workers"], signal["reason"]) == ("default", 5, "backlog")
        assert (signal["eligible"], signal["slots_per_worker"], signal["drain_within"]) == (45, 10, "1m")
        everything = {one["queue"]: one for one in (await client.get("/api/v1/scale")).json()["queues"]}
        assert everything["default"] == signal
        assert (everything["spare"]["slots_per_worker"], everything["spare"]["wanted_workers"]) == (30, 1)

        text = (await client.get("/metrics")).text
        assert 'headrace_wanted_workers{queue="default"} 5\n' in text
        assert 'headrace_eligible_jobs{queue="default"} 45\n' in text
        assert 'headrace_scale_held{queue="default"} 0\n' in text


async def test_a_scrape_counts_queues_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For their figures and for the signals."""
    counts, count = list[None](), MemoryInspect.queue_stats

    async def counted(inspect: MemoryInspect) -> list[QueueStats]:
        counts.append(None)
        return await count(inspect)

    app = shop()
    async with served(app, worker=False) as client:
        await app.runtime.stores.jobs.insert_jobs([NewJob(JobSpec("double"), ARGS)])
        monkeypatch.setattr(MemoryInspect, "queue_stats", counted)
        text = (await client.get("/metrics")).text
    assert 'headrace_wanted_workers{queue="default"} 1\n' in text and "headrace_queue_jobs" in text
    assert len(counts) == 1


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [("queue=nope", 404, "not_found"), ("queue=a%20b", 422, "invalid_name"), ("name=default", 422, "invalid_input")],
)
async def test_what_cannot_be_told_is_a_problem(query: str, status: int, code: str) -> None:
    """A queue that nobody knows, a wrong name, a misspelt filter."""
    async with served(shop(), worker=False) as client:
        answer = await client.get(f"/api/v1/scale?{query}")
        assert (answer.status_code, code_of(answer)) == (status, code)


async def test_a_budget_that_a_real_worker_meets_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process tells of the refusal with a heartbeat; once it is raised, it lets go."""
    monkeypatch.setattr(gateway, "CallerSession", partial(CallerSession, interval=timedelta(milliseconds=50)))
    async with ScriptedProvider(answer=lambda request: "Oslo") as model:
        for name, value in model.environment.items():
            monkeypatch.setenv(name, value)
        app = App(settings=load_settings(environ={**model.environment, "HEADRACE_URL": "memory://"}))

        @app.task
        async def name(question: str) -> str:
            return await app.llm.complete(question, max_tokens=10)

        async def held() -> bool:
            [signal] = await scale_signals(app, queue="default")
            assert signal.wanted_workers <= 1
            return signal.reason is ScaleReason.BUDGET

        async with app.worker():
            await app.budgets.set("day", tokens=30)
            await app.submit(name, [f"Which city is number {number}?" for number in range(4)])
            await wait_until(held, message="the budget to hold the queue")
            await app.budgets.set("day", tokens=500)
            assert not await held()


def test_the_command_line_tells_why(headrace: CommandLine) -> None:
    """As a table, as JSON and for Prometheus; where fewer are wanted, how a worker ends."""
    assert "No queue has jobs" in headrace.text("queue", "scale")

    async def work() -> None:
        stores = headrace.stores
        for number in range(3):
            session = NewSession(ProcessId("h", number, 1), "box", {"llm": 8}, LEASE)
            await stores.sessions.register_session(session)
        await stores.jobs.insert_jobs([NewJob(JobSpec("work", "llm"), ARGS) for _ in range(9)])
        jobs = await stores.jobs.claim_jobs(Claim(session.id, "llm", 1))
        done = [Completion(job.id, job.attempt, JobState.SUCCEEDED) for job in jobs]
        await stores.jobs.complete_jobs(session.id, done)

    asyncio.run(work())
    shown = " ".join(headrace.text("queue", "scale").split())
    assert "8 jobs could start" in shown
    assert "SIGTERM" in shown
    document = headrace.json("queue", "scale", "llm")
    assert (document["wanted_workers"], document["live_workers"], document["reason"]) == (1, 3, "idle")
    assert [one["queue"] for one in headrace.json("queue", "scale")] == ["llm"]
    assert 'headrace_wanted_workers{queue="llm"} 1\n' in headrace.text("queue", "scale", "--prometheus")
    assert headrace.refusal("queue", "scale", "nope")[1]["code"] == "not_found"
    assert headrace("queue", "scale", "--prometheus", "--json").exit_code == 2


def test_settings_of_a_queue_win(tmp_path: Path) -> None:
    """What a queue does not say is that of `[scaling]`; none of it is an option of `app.queue`."""
    file = tmp_path / "headrace.toml"
    file.write_text(
        '[scaling]\nmax_workers = 30\ndrain_within = "2m"\n[queues.llm]\nmin_workers = 0\nmax_workers = 4\n'
    )
    settings = load_settings(environ={}, file=file)
    assert settings.scaling_of("llm") == ScalingRule(0, 4, timedelta(minutes=2))
    assert settings.scaling_of("other") == ScalingRule(1, 30, timedelta(minutes=2))
    assert settings.queues["llm"].options() == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[scaling]\nmin_workers = 11", r"\[scaling\] min_workers must be at most max_workers, which is 10, got 11"),
        ("[queues.llm]\nmin_workers = 11", r"\[queues.llm\] min_workers must be at most max_workers"),
        ('[queues.llm]\ndrain_within = "0s"', r"\[queues.llm\] drain_within must be longer than zero"),
        ("[scaling]\nmax_workers = 0", r"\[scaling\] max_workers must be a whole number from 1"),
    ],
)
def test_wrong_settings_stop_the_start(tmp_path: Path, text: str, said: str) -> None:
    """Naming the table, the key, the rule and the value."""
    file = tmp_path / "headrace.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=said):
        load_settings(environ={}, file=file)
