"""Names, process ids and sessions that come back: nobody takes for alive what is dead, nor the other way round."""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from headrace import App
from headrace.engine.host import is_gone, start_time, this_host
from headrace.model.batch import BatchOutcome
from headrace.model.job import Claim, Completion, JobState
from headrace.model.session import NewSession, ProcessId
from tests.faults.checker import check
from tests.faults.conftest import ON_EVERY_STORE_SLOWLY, may_unshare
from tests.faults.site import RECOVERY, Site
from tests.faults.tasks import effect, wait_at
from tests.faults.test_workers_die import started
from tests.waiting import wait_until

pytestmark = ON_EVERY_STORE_SLOWLY
LAST_PID = Path("/proc/sys/kernel/ns_last_pid")


@pytest.mark.skipif(not may_unshare(), reason="needs pid namespaces")
async def test_three_workers_of_one_name_and_pid_are_three(site: Site, app: App) -> None:
    """Equal hostnames and equal pids in namespaces of their own: no job is stolen, and a death costs one its jobs."""
    workers = [site.start_worker("--concurrency", "2", isolated=True) for _ in range(3)]
    for worker in workers:
        await asyncio.to_thread(worker.wait_until_started)
    async with app:
        batch = await app.submit(wait_at, [f"g{number}" for number in range(6)])
        await wait_until(started(site, 6))
        sessions = await app.runtime.stores.inspect.list_sessions()
        assert len({session.hostname for session in sessions}) == 1
        assert len({session.process.pid for session in sessions}) == 1
        assert len({session.process.host for session in sessions}) == 3
        workers[0].kill()
        # Only those of the dead one go on; the others' handlers still wait for their gates.
        site.start_worker("--concurrency", "2").wait_until_started()
        await wait_until(started(site, 8), RECOVERY)
        for number in range(6):
            site.open(f"g{number}")
        assert (await batch.wait(20)).outcome is BatchOutcome.SUCCEEDED
        attempts = sorted([item.result async for item in batch.results()])
    assert attempts == [1, 1, 1, 1, 2, 2]
    assert (await check(site)).clean


@pytest.mark.skipif(not may_unshare(), reason="needs to choose process ids")
async def test_a_process_with_the_pid_of_a_dead_worker_is_not_that_worker(site: Site, app: App) -> None:
    """A pid that is in use again does not keep a session alive: its start time tells, and the jobs run at once."""
    long_lease = {"HEADRACE_QUEUE_VISIBILITY_TIMEOUT": "10m"}
    victim = site.start_worker("--concurrency", "1", environ=long_lease).wait_until_started()
    async with app:
        job = await wait_at.enqueue("g")
        await wait_until(started(site))
        victim.kill()
        usurper = await with_pid(victim.pid)
        try:
            [session] = await app.runtime.stores.inspect.list_sessions()
            assert (usurper.pid, session.alive) == (session.process.pid, True)
            assert start_time(usurper.pid) != session.process.start_time
            assert is_gone(session.process)
            site.open("g")
            site.start_worker("--concurrency", "1", environ=long_lease)
            # Far below the lease, and time for a busy machine to start a worker.
            assert await job.result(30) == 2
        finally:
            usurper.kill()
            await usurper.wait()
    assert (await check(site)).clean


async def with_pid(pid: int) -> asyncio.subprocess.Process:
    """Start a process that gets this pid, which must be free; others may come in between."""
    for _ in range(200):
        LAST_PID.write_text(str(pid - 1))
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=asyncio.subprocess.PIPE)
        if process.pid == pid:
            return process
        process.kill()
        await process.wait()
    raise AssertionError(f"no process got the pid {pid}")


async def test_a_session_that_ended_never_comes_back(site: Site, app: App) -> None:
    """One that registers, renews, claims or records under the id of an ended session changes nothing."""
    async with app:
        stores = app.runtime.stores
        job = await effect.enqueue(1)
        old = NewSession(ProcessId(this_host(), 1, 0), "reused", {"default": 1}, timedelta(hours=1))
        await stores.sessions.register_session(old)
        [claimed] = await stores.jobs.claim_jobs(Claim(old.id, "default", 1))
        await stores.sessions.expire_sessions([old.id])
        await stores.jobs.rescue_jobs(limit=10)

        await stores.sessions.register_session(old)
        assert not (await stores.sessions.renew_session(old.id, lease=old.lease, stats={})).alive
        assert await stores.jobs.claim_jobs(Claim(old.id, "default", 1)) == []
        late = Completion(claimed.id, claimed.attempt, JobState.SUCCEEDED, result="666")
        assert await stores.jobs.complete_jobs(old.id, [late]) == []
        assert await job.status() is JobState.READY
        site.start_worker()
        assert await job.result(20) == 1
    assert (await check(site)).clean
