"""Child processes on a shared store, and jobs that kill whatever runs them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from headrace import App
from headrace.model.errors import JobFailedError
from headrace.model.job import JobState
from tests.faults.checker import check
from tests.faults.conftest import ON_EVERY_STORE_SLOWLY
from tests.faults.site import RECOVERY, RECOVERY_HERE, Site
from tests.faults.tasks import effect_in_thread, hold_in_child, kill_worker, steps, steps_in_child, steps_in_child_async
from tests.waiting import wait_until

pytestmark = ON_EVERY_STORE_SLOWLY


async def test_a_killed_worker_costs_no_checkpoint(site: Site, app: App) -> None:
    """What a step had stored before its worker was killed is not done again by the next one."""
    victim = site.start_worker().wait_until_started()
    async with app:
        job = await steps.enqueue(1)

        async def stored() -> bool:
            return bool(await app.runtime.stores.jobs.load_steps(job.id))

        await wait_until(stored)
        site.start_workers(1)
        victim.kill()
        assert await job.result(RECOVERY) == ["receipt 1", 2]
    assert site.counts("paid") == {1: 1}


async def test_a_child_writes_its_checkpoints_itself(site: Site, app: App) -> None:
    """Handlers in one child, sync and async, store steps under the fence of their attempt over the same connections."""
    worker = site.start_worker("--concurrency", "1").wait_until_started()
    async with app:
        receipt, pid, attempt = await (await steps_in_child.enqueue(2)).result(20)
        assert (receipt, pid == worker.pid, attempt) == ("receipt 2", False, 2)
        assert await (await steps_in_child_async.enqueue(3)).result(20) == ["receipt 3", pid, 1]
        assert await (await steps_in_child.enqueue(4)).result(20) == ["receipt 4", pid, 2]
    assert site.counts("paid") == {2: 1, 3: 1, 4: 1}


async def test_children_die_with_a_killed_worker(site: Site, app: App) -> None:
    """kill -9 of a worker ends the handlers in its children too: their jobs run elsewhere, and must not run twice."""
    worker = site.start_worker().wait_until_started()
    async with app:
        await hold_in_child.enqueue()
        await wait_until(lambda: site.effects("start"))
        [line] = site.effects("start")
        assert line["pid"] != worker.pid
        worker.kill()
        await wait_until(lambda: not Path(f"/proc/{line['pid']}").exists(), RECOVERY_HERE)


async def test_a_job_that_kills_its_workers_becomes_a_dead_letter(site: Site, app: App) -> None:
    """It takes two workers with it, then runs alone in child processes, and is convicted by those alone.

    Its neighbours run again and succeed, and the workers that follow live.
    """
    async with app:
        deadly = await kill_worker.enqueue(1)
        neighbours = [await effect_in_thread.enqueue(number, 0.3) for number in range(10, 14)]
        deaths = 0
        # Not waited for: it may be dead before it can say that it works.
        worker = site.start_worker("--concurrency", "5")
        loop = asyncio.get_running_loop()
        end = loop.time() + 60
        while not (view := await app.runtime.stores.inspect.get_job(deadly.id)).state.final:  # type: ignore[union-attr]
            assert loop.time() < end, view
            if worker.process.poll() is not None:
                deaths += 1
                worker = site.start_worker("--concurrency", "5")
            await asyncio.sleep(0.02)
        assert view is not None
        assert view.error is not None
        assert (view.state, view.error.kind, view.failures, view.crashes) == (JobState.FAILED, "poison", 0, 5)
        assert deaths == 2
        assert [await neighbour.result(20) for neighbour in neighbours] == [10, 11, 12, 13]
        assert worker.process.poll() is None
        views = [await app.runtime.stores.inspect.get_job(neighbour.id) for neighbour in neighbours]
        assert {view.failures for view in views if view} == {0}
    workers = {one.pid for one in site.workers}
    runs = site.effects("start")
    alone = [line for line in runs if line["number"] == 1 and line["pid"] not in workers]
    assert (len(alone), site.counts("start")[1]) == (3, 5)
    assert (await check(site)).clean


async def test_a_dead_letter_says_why(site: Site, app: App) -> None:
    """Each crash of a poisonous job is kept with the job, and its handle raises with the kind."""
    async with app:
        job = await kill_worker.enqueue(1)
        for _ in range(2):
            site.start_worker("--concurrency", "1")
        loop = asyncio.get_running_loop()
        end = loop.time() + 60
        while not (await job.status()).final:
            assert loop.time() < end
            if all(worker.process.poll() is not None for worker in site.workers):
                site.start_worker()
            await asyncio.sleep(0.02)
        try:
            await job.result(1)
        except JobFailedError as error:
            assert "poison" in str(error)
        records = await app.runtime.stores.inspect.get_attempts(job.id)
    assert [record.outcome for record in records] == ["crashed"] * 4 + ["failed"]
