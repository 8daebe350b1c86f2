"""Jobs on a Celery farm: they end as anywhere else, and the store is the only one that knows it."""

from __future__ import annotations

import json
import os
import signal
from base64 import b64decode
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.executors.celery.presence import LIFE_SECONDS
from headrace.model.errors import JobFailedError
from headrace.model.job import JobState
from headrace.tasks import Task
from tests.faults.farm import Farm, farm_on
from tests.faults.farm_tasks import (
    app,
    effect,
    emitting,
    end_with,
    here,
    in_thread,
    paid_then,
    parked,
    reports,
    spin,
    stubborn,
)
from tests.unit.engine_app import until_final
from tests.waiting import wait_until


@pytest.fixture
async def farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Farm]:
    """Set a farm up."""
    async with farm_on(tmp_path, monkeypatch) as farm:
        yield farm


ENDINGS = {
    "snooze": (JobState.SUCCEEDED, 2, ""),
    "retry": (JobState.FAILED, 3, "retry"),
    "fail": (JobState.FAILED, 1, "failed"),
    "cancel": (JobState.CANCELLED, 1, "cancelled"),
    "raise": (JobState.FAILED, 3, "ValueError"),
}


async def test_jobs_end_there_as_they_do_here(farm: Farm) -> None:
    """Results, outcomes, retries, steps, parking and events are those of any executor; a local queue stays local."""
    worker = farm.start_farm()
    async with app.worker(grace=1):
        assert await (await effect.enqueue(4)).result(30) == 8
        [line] = farm.effects("run")
        assert (line["parent"], line["pid"] == os.getpid()) == (worker.pid, False)
        assert await (await here.enqueue()).result(30) == os.getpid()
        receipt, pid, attempt, last_try = await (await in_thread.enqueue(7)).result(30)
        assert (receipt, pid in {os.getpid(), worker.pid}, attempt, last_try) == ("receipt 7", False, 1, False)
        for how, expected in ENDINGS.items():
            view = await until_final(app, await end_with.enqueue(how))
            ended = view.state, view.attempt, view.error.kind if view.error else "", view.crashes
            assert ended == (*expected, 0), how
            logs = await app.runtime.stores.inspect.attempt_logs(view.id)
            assert [log.attempt for log in logs] == list(range(1, view.attempt + 1))
            assert {line.message for log in logs for line in log.lines} == {f"ends with {how}"}
        assert await (await reports.enqueue(5)).result(20) == 5
        with pytest.raises(JobFailedError, match="no activity for"):
            await (await reports.enqueue(0)).result(20)
        waiting = await parked.enqueue(1)

        async def left() -> bool:
            return (await waiting.status()) is JobState.PARKED

        await wait_until(left)
        await app.signal("farm-1", "go on")
        assert await waiting.result(30) == "go on"
        await (await emitting.enqueue(5)).result(30)
        assert app.runtime.stores.events is not None
        events = await app.runtime.stores.events.outbox.list_events(limit=10)
        assert [event.payload for event in events] == [{"number": 5}]
        batch = await app.submit(effect, range(100, 160))
        assert sorted([item.result async for item in batch.results()]) == [2 * number for number in range(100, 160)]
    assert set(farm.counts("run").values()) == {1}


async def test_a_run_goes_node_by_node_when_its_tasks_run_there(farm: Farm) -> None:
    """Arguments, large values and files reach the farm and come back; nodes of other queues run in the worker."""
    farm.start_farm()
    async with app.worker(grace=1):
        run = await app.start("files", 400_000)
        result = await run.result("40s")
        assert (result["bytes"], result["text"], result["pid"] == os.getpid()) == (400_000, 400_000, False)
        view = await app.runtime.stores.runs.get_run(run.id)
        assert view is not None
        assert (view.level, view.reason.split(",")[0]) == ("node_level", "task write_file passes a gate")
        doubles = await app.start("doubles", 5)
        assert await doubles.result("40s") == 20
    assert farm.counts("run") == dict.fromkeys(range(5), 1)
    assert os.getpid() not in {line["pid"] for line in farm.effects("run")}


async def test_a_run_that_was_begun_whole_goes_on_node_by_node(farm: Farm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who starts a run may know nothing of the farm: the worker that finds a task of it moves the run on."""
    there = app.settings
    monkeypatch.setattr(app, "settings", replace(there, worker=replace(there.worker, executor="local")))
    async with app:
        run = await app.start("files", 1_000)
        view = await app.runtime.stores.runs.get_run(run.id)
        assert view is not None
        assert view.level == "workflow_level"
    monkeypatch.setattr(app, "settings", there)
    farm.start_farm(1)
    async with app.worker(grace=1):
        assert (await app.find_run(run.id).result("40s"))["pid"] != os.getpid()


async def test_messages_carry_the_fence_alone(farm: Farm) -> None:
    """What lies in the broker names job, attempt and session; neither arguments nor the name of the task."""
    farm.start_farm(1)
    async with app.worker(grace=0):
        job = await paid_then.enqueue(4711, "gate")
        await wait_until(lambda: farm.effects("hold"))

        def whole() -> str | None:
            # Of an array the broker's answer may be read in part.
            text = farm.broker.call("HVALS", "headrace:farm:unacked")
            return text if text.endswith("]") else None

        unacked = await wait_until(whole)
        assert unacked is not None
        message = json.loads(unacked[unacked.index("[{") :].splitlines()[0])[0]
        assert message["content-type"] == "application/json"
        session = (await app.runtime.stores.inspect.get_job(job.id)).session  # type: ignore[union-attr]
        assert json.loads(b64decode(message["body"]))[:2] == [[str(job.id), 1, str(session)], {}]
        assert message["headers"]["task"] == "headrace.call"
        assert "paid_then" not in unacked
        assert "4711" not in unacked
        farm.open("gate")
        await job.result(30)


async def test_no_more_is_claimed_than_the_farm_can_start(farm: Farm, caplog: pytest.LogCaptureFixture) -> None:
    """Jobs that find no slot there stay ready; when no worker of the farm is alive at all, a warning says so."""
    async with app.worker(grace=0, concurrency=10) as worker:
        jobs = [await paid_then.enqueue(number, "gate") for number in range(4)]
        await wait_until(lambda: "no Celery worker serves queue default" in caplog.text)
        [stats] = [one for one in await app.runtime.stores.inspect.queue_stats() if one.name == "default"]
        assert (stats.ready, stats.running) == (4, 0)
        farm.start_farm(2)
        await wait_until(lambda: len(farm.effects("hold")) == 2)
        begun = farm.said()["at"]
        await wait_until(lambda: farm.said()["at"] > begun)
        assert worker.session is not None
        assert worker.session.running == 2
        assert farm.broker.call("LLEN", "headrace.default") == ":0"
        farm.open("gate")
        assert [await job.result(30) for job in jobs] == [0, 1, 2, 3]
    assert farm.counts("hold") == dict.fromkeys(range(4), 1)


@pytest.mark.parametrize("task", [stubborn, pytest.param(spin, marks=pytest.mark.slow)], ids=lambda task: task.name)
async def test_a_handler_that_does_not_end_is_ended_at_its_timeout(farm: Farm, task: Task[[int], None]) -> None:
    """A thread, or a blocked event loop, ends with its process; the farm goes on with another one."""
    farm.start_farm(1)
    async with app.worker(grace=0):
        with pytest.raises(JobFailedError, match="timeout"):
            await (await task.enqueue(1)).result(40)
        assert await (await effect.enqueue(3)).result(30) == 6
    pids = [line["pid"] for line in farm.effects("hold")]
    await wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


async def test_a_cancelled_job_stops_there(farm: Farm) -> None:
    """Its handler is cancelled within moments, and its process takes the next job."""
    farm.start_farm(1)
    async with app.worker(grace=0):
        job = await paid_then.enqueue(1, "never")
        await wait_until(lambda: farm.effects("hold"))
        await job.cancel()
        assert (await until_final(app, job)).state is JobState.CANCELLED
        assert await (await effect.enqueue(2)).result(30) == 4
    [hold], [run] = farm.effects("hold"), farm.effects("run")
    assert hold["pid"] == run["pid"]


@pytest.mark.slow
async def test_sigterm_lets_running_jobs_end(farm: Farm) -> None:
    """A worker of the farm that is told to stop takes nothing more, finishes, and exits with 0."""
    process = farm.start_farm(1)
    async with app.worker(grace=0):
        job = await paid_then.enqueue(1, "gate")
        await wait_until(lambda: farm.effects("hold"))
        process.send_signal(signal.SIGTERM)
        await wait_until(lambda: farm.said()["closing"])
        # Longer than a beat lives.
        since = farm.said()["at"]
        await wait_until(lambda: farm.said()["at"] > since + LIFE_SECONDS + 1)
        farm.open("gate")
        assert await job.result(30) == 1
    assert process.wait(20) == 0
    assert (farm.counts("hold"), farm.alive) == ({1: 1}, [])
