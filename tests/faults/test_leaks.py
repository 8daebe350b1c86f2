"""Workers and apps that come and go in one process leave nothing behind on the server."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import asyncpg

from headrace import App
from headrace.wiring import make_worker
from tests.faults.links import clients
from tests.faults.site import Site
from tests.faults.tasks import effect
from tests.waiting import wait_until


async def test_workers_that_come_and_go_leave_no_connection_and_no_thread(
    app: App, observer: asyncpg.Connection
) -> None:
    """Start and stop, with and without jobs, in any order: afterwards sessions are closed and links are gone."""
    before = await clients(observer)
    async with app:
        for number in range(8):
            worker = make_worker(app, {"default": 4}, None)
            await worker.stop(timedelta())
            await worker.start()
            await worker.start()
            if number % 2:
                assert await (await effect.enqueue(number)).result(20) == number
            await worker.stop(timedelta())
            await worker.stop(timedelta())
            assert "headrace-heartbeat" not in [thread.name for thread in threading.enumerate()]
        sessions = await app.runtime.stores.inspect.list_sessions()
        assert (len(sessions), [session for session in sessions if session.alive]) == (8, [])

    async def all_gone() -> bool:
        return await clients(observer) == before

    await wait_until(all_gone)


async def test_two_that_open_an_app_together_share_its_connections(site: Site, app: App) -> None:
    """Workers of one app that start at the same moment use one store, and the last one out closes it."""
    done = asyncio.Event()

    async def work() -> None:
        async with app.worker(concurrency=2):
            await done.wait()

    workers = [asyncio.create_task(work()) for _ in range(2)]
    await wait_until(lambda: app.is_open)
    batch = await app.submit(effect, range(20))
    await batch.wait(20)
    sessions = await app.runtime.stores.inspect.list_sessions()
    done.set()
    await asyncio.gather(*workers)
    assert ([session.alive for session in sessions], app.is_open) == ([True, True], False)
    assert set(site.counts("effect").values()) == {1}
