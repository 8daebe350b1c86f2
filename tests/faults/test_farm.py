"""A Celery farm under attack: killed processes, a broker that forgets, doubles and goes away. Nothing runs twice."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest

from headrace.executors.celery.sending import Sender
from headrace.executors.celery.sight import SETTLE_SECONDS
from headrace.executors.celery.site import CelerySite
from headrace.model.errors import JobFailedError
from headrace.model.farm import Fence
from headrace.model.job import JobState
from headrace.settings import load_settings
from tests.faults.farm import TAKEOVER, Farm, farm_on
from tests.faults.farm_tasks import app, climb, deadly, effect, hasty, once, paid_then
from tests.unit.engine_app import until_final, view_of
from tests.waiting import wait_until


@pytest.fixture
async def farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Farm]:
    """Set a farm up."""
    async with farm_on(tmp_path, monkeypatch) as farm:
        yield farm


async def test_a_killed_process_costs_no_step(farm: Farm) -> None:
    """kill -9 of the process that runs a job: it runs again there, uncharged, and its step is not done again."""
    farm.start_farm(2)
    async with app.worker(grace=0):
        job = await paid_then.enqueue(1, "gate")
        await wait_until(lambda: farm.effects("hold"))
        [line] = farm.effects("hold")
        os.kill(line["pid"], signal.SIGKILL)
        await wait_until(lambda: len(farm.effects("hold")) == 2, TAKEOVER)
        farm.open("gate")
        view = await until_final(app, job)
        assert (view.state, view.failures, view.crashes, view.attempt) == (JobState.SUCCEEDED, 0, 1, 2)
    assert (farm.counts("paid"), farm.counts("done")) == ({1: 1}, {1: 1})


@pytest.mark.slow
async def test_a_job_that_kills_its_processes_is_a_poison(farm: Farm) -> None:
    """Celery gives its message out again and again; three processes are enough, and the farm lives."""
    farm.start_farm(1)
    async with app.worker(grace=0):
        with pytest.raises(JobFailedError, match="poison"):
            await (await deadly.enqueue(1)).result(TAKEOVER.total_seconds())
        assert await (await effect.enqueue(2)).result(20) == 4
    assert farm.counts("run") == {1: 3, 2: 1}


@pytest.mark.slow
async def test_a_job_that_gets_on_is_no_poison(farm: Farm) -> None:
    """It stores a step and dies at once, again and again: nobody needs to be told of the step but the store."""
    farm.start_farm(1)
    async with app.worker(grace=0):
        job = await climb.enqueue(4)
        assert await job.result(TAKEOVER.total_seconds()) == 4
        view = await view_of(app, job)
    assert (view.crashes, view.failures, view.attempt) == (4, 0, 5)


@pytest.mark.slow
async def test_a_lifespan_is_no_part_of_a_job(farm: Farm) -> None:
    """Where it fails nothing is begun until it does not; where it is slow, no job's time runs meanwhile."""
    farm.open("lifespan fails")
    farm.start_farm(1)
    async with app.worker(grace=0):
        job = await hasty.enqueue(1)
        await wait_until(lambda: farm.logs().count("the app cannot be opened") >= 2)
        farm.open("lifespan is slow")
        (farm.root / "lifespan fails").unlink()
        assert await job.result(TAKEOVER.total_seconds()) == 1
        view = await view_of(app, job)
    assert (view.failures, view.crashes) == (0, 0)
    assert farm.counts("run") == {1: 1}


@pytest.mark.slow
async def test_two_workers_share_a_farm(farm: Farm) -> None:
    """The second gets nothing while the first has it all; then both work, and no job waits in the broker."""
    farm.start_farm(2)
    async with app.worker(grace=0) as first:
        held = [await paid_then.enqueue(number, "gate") for number in range(2)]
        await wait_until(lambda: len(farm.effects("hold")) == 2)
        farm.start_worker()
        more = [await paid_then.enqueue(number, "later") for number in range(2, 6)]
        await wait_until(lambda: farm.broker.call("SCARD", "headrace:farm:senders") == ":2")
        await asyncio.sleep(2 * SETTLE_SECONDS)
        assert (len(farm.effects("hold")), farm.broker.call("LLEN", "headrace.default")) == (2, ":0")
        farm.open("gate")
        assert [await job.result(20) for job in held] == [0, 1]
        await wait_until(lambda: len(farm.effects("hold")) == 4, TAKEOVER)
        assert first.session is not None
        await wait_until(lambda: first.session is not None and first.session.running == 1)
        farm.open("later")
        assert [await job.result(TAKEOVER.total_seconds()) for job in more] == [2, 3, 4, 5]
        assert [(await view_of(app, job)).attempt for job in more] == [1] * 4


@pytest.mark.slow
async def test_another_worker_of_the_farm_takes_over(farm: Farm) -> None:
    """A worker of the farm is killed with its processes: what they ran goes on in another one; nothing is charged."""
    first = farm.start_farm(1)
    async with app.worker(grace=0):
        job = await paid_then.enqueue(1, "gate")
        await wait_until(lambda: farm.effects("hold"))
        [line] = farm.effects("hold")
        once_only = await once.enqueue(2, "gate")
        farm.start_farm(2)
        await wait_until(lambda: farm.effects("hold", 2))
        farm.kill(first)
        await wait_until(lambda: not Path(f"/proc/{line['pid']}").exists())
        await wait_until(lambda: len(farm.effects("hold", 1)) == 2, TAKEOVER)
        farm.open("gate")
        view = await until_final(app, job)
        assert (view.state, view.failures, view.crashes) == (JobState.SUCCEEDED, 0, 0)
        assert await once_only.result(20) == 2
    assert farm.counts("paid") == {1: 1}


@pytest.mark.slow
async def test_what_may_run_once_fails_with_its_farm(farm: Farm) -> None:
    """An at-most-once job whose worker of the farm was killed is not run again."""
    process = farm.start_farm(1)
    async with app.worker(grace=0):
        job = await once.enqueue(1, "gate")
        await wait_until(lambda: farm.effects("hold"))
        farm.kill(process)
        with pytest.raises(JobFailedError, match="executor_lost"):
            await job.result(TAKEOVER.total_seconds())
    assert farm.counts("hold") == {1: 1}


async def test_a_broker_that_forgets_loses_nothing(farm: Farm) -> None:
    """FLUSHALL with messages waiting and jobs running: those run on, these are sent again; each runs once."""
    process = farm.start_farm(2)
    async with app.worker(grace=0, concurrency=10):
        held = [await paid_then.enqueue(number, "gate") for number in range(2)]
        await wait_until(lambda: len(farm.effects("hold")) == 2)
        # A stopped worker takes no message: it waits in the broker when that is emptied.
        process.send_signal(signal.SIGSTOP)
        farm.open("gate")
        assert [await job.result(20) for job in held] == [0, 1]
        waiting = [await effect.enqueue(number) for number in range(10, 20)]
        await wait_until(lambda: farm.broker.call("LLEN", "headrace.default") not in (":0", ""))
        farm.broker.call("FLUSHALL")
        process.send_signal(signal.SIGCONT)
        assert [await job.result(40) for job in waiting] == [2 * number for number in range(10, 20)]
        # Sent again, and not given up and claimed again.
        assert [(await view_of(app, job)).attempt for job in waiting] == [1] * 10
    assert set((farm.counts("hold") | farm.counts("run")).values()) == {1}


async def test_a_doubled_message_does_nothing(farm: Farm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each message is published twice, and one of long ago once more: every job runs once."""
    publish = Sender._publish

    def twice(self: Sender, messages: list[tuple[Fence, str]]) -> None:
        publish(self, [message for message in messages for _ in range(2)])

    monkeypatch.setattr(Sender, "_publish", twice)
    farm.start_farm(2)
    async with app.worker(grace=0):
        jobs = [await effect.enqueue(number) for number in range(40)]
        assert [await job.result(40) for job in jobs] == [2 * number for number in range(40)]
        settings = load_settings(environ={k: v for k, v in farm.environment.items() if k.startswith("HEADRACE_")})
        site = CelerySite(settings.celery.broker_url, settings.celery.queue_prefix)
        sender = Sender(site, site.celery(settings.worker.max_processing_time))
        view = await app.runtime.stores.inspect.get_job(jobs[0].id)
        assert view is not None
        old = Fence(jobs[0].id, 1, view.session or UUID(int=1))
        await asyncio.to_thread(publish, sender, [(old, "default")])
        await sender.close()
        await wait_until(lambda: farm.broker.call("LLEN", "headrace.default") == ":0")
        await wait_until(lambda: "an old message" in farm.logs())
    assert farm.counts("run") == dict.fromkeys(range(40), 1)


async def test_a_killed_worker_costs_no_step(farm: Farm) -> None:
    """kill -9 of the worker that sent a job: another one sends it again, and the farm stops what nobody waits for."""
    farm.start_farm(2)
    victim = farm.start_worker()
    async with app:
        job = await paid_then.enqueue(1, "gate")
        await wait_until(lambda: farm.effects("hold"))
        farm.kill(victim)
        farm.start_worker()
        await wait_until(lambda: len(farm.effects("hold")) == 2, TAKEOVER)
        [attempt] = await app.runtime.stores.inspect.get_attempts(job.id)
        assert (attempt.outcome, attempt.error.kind if attempt.error else "") == ("lost", "executor_lost")
        # The first one has lost its job, and its process is free again.
        assert await (await effect.enqueue(5)).result(20) == 10
        farm.open("gate")
        view = await until_final(app, job)
        assert (view.state, view.failures, view.crashes) == (JobState.SUCCEEDED, 0, 0)
    assert (farm.counts("paid"), farm.counts("done")) == ({1: 1}, {1: 1})


async def test_a_broker_that_goes_away_and_comes_back(farm: Farm) -> None:
    """A running job ends while the broker is away, and is recorded then; what waits runs when it is back."""
    farm.start_farm(1)
    async with app.worker(grace=0):
        job = await paid_then.enqueue(1, "gate")
        await wait_until(lambda: farm.effects("hold"))
        farm.broker.stop(signal.SIGKILL)
        waiting = [await effect.enqueue(number) for number in range(2, 6)]
        farm.open("gate")
        assert await job.result(20) == 1
        farm.broker.start()
        assert [await job.result(40) for job in waiting] == [4, 6, 8, 10]
    assert farm.counts("hold") == {1: 1}
    assert set(farm.counts("run").values()) == {1}
