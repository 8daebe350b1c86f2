"""A Redis store that loses its data: noticed by every process, and never begun anew in silence."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import App
from headrace.model.batch import NewBatch
from headrace.model.errors import StorageResetError, StoreVersionError
from headrace.model.job import Claim, JobSpec, NewJob
from headrace.settings import load_settings
from headrace.stores.redis import RedisSite, adopt, create_namespace, open_redis_stores
from tests.backends.redis import empty_site, new_prefix, stores_on
from tests.backends.valkey import ValkeyServer
from tests.conformance.scenario import ARGS, SPEC, items
from tests.waiting import wait_until


@pytest.fixture
def server() -> Any:
    """Return a server of the test's own, that it may flush."""
    started = ValkeyServer()
    yield started
    started.remove()


@asynccontextmanager
async def system(server: ValkeyServer, directory: Path) -> AsyncIterator[App]:
    """Run an app with a worker on a namespace of its own, with short intervals."""
    settings = load_settings(
        environ={
            "HEADRACE_URL": server.url,
            "HEADRACE_DIRECTORY": str(directory),
            "HEADRACE_QUEUE_VISIBILITY_TIMEOUT": "3s",
            "HEADRACE_WORKER_HEARTBEAT_INTERVAL": "300ms",
            "HEADRACE_WORKER_POLL_INTERVAL": "50ms",
        },
        file=Path("missing.toml"),
    )
    await create_namespace(site_of(server, directory))
    yield App(settings=settings)


def site_of(server: ValkeyServer, directory: Path) -> RedisSite:
    """Return the namespace of `system`."""
    return RedisSite(server.url, memory=directory / "redis-epochs.json")


def empty(server: ValkeyServer, how: str) -> None:
    """Take the data away."""
    if how == "FLUSHALL":
        server.call("FLUSHALL")
    else:
        server.stop()
        for name in ("appendonlydir", "dump.rdb"):
            part = server.root / name
            for file in part.iterdir() if part.is_dir() else []:
                file.unlink()
        server.start()


@pytest.mark.parametrize("how", ["FLUSHALL", "an empty restart"])
async def test_a_store_that_lost_its_data_stops_everybody_and_is_adopted(
    server: ValkeyServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    """Under load: handlers are stopped, nothing is claimed, inserted or made, one alarm; adopted, all goes on."""
    caplog.set_level(logging.CRITICAL, "headrace.redis")
    started: list[int] = []
    stopped: list[int] = []
    async with system(server, tmp_path) as app:

        @app.task
        async def work(number: int) -> int:
            started.append(number)
            try:
                await asyncio.sleep(0 if number >= 0 else 60)
            except asyncio.CancelledError:
                stopped.append(number)
                raise
            return number

        async with app.worker():
            long = await work.enqueue(-1)
            await app.submit(work, range(300))
            await wait_until(lambda: len(started) > 50)
            empty(server, how)
            with pytest.raises(StorageResetError, match="headrace queue adopt"):
                while True:
                    await work.enqueue(1_000)
            await wait_until(lambda: stopped == [-1], timedelta(seconds=4))
            before = len(started)
            for call in (app.submit(work, [1]), long.status()):
                with pytest.raises(StorageResetError):
                    await call
            # Nothing of the store is made anew by anybody who works.
            assert server.call("DBSIZE") == ":0"
            assert [record.message[:13] for record in caplog.records] == ["storage_reset"]
            await adopt(site_of(server, tmp_path))
            await wait_until(lambda: result_of(work, 7))
            await wait_until(lambda: resets(app))
            assert len(started) == before + 1


async def result_of(task: Any, number: int) -> bool:
    """Return whether a task can be enqueued and runs."""
    try:
        return bool(await (await task.enqueue(number)).result(10) == number)
    except StorageResetError:
        return False


async def resets(app: App) -> bool:
    """Return whether the worker of the app says that its store was reset once."""
    [session] = [each for each in await app.runtime.stores.inspect.list_sessions() if each.alive]
    return session.stats.get("headrace.store.resets") == 1


@pytest.mark.parametrize("noticed", [True, False])
async def test_after_an_adopt_running_workers_fire_their_schedules(
    server: ValkeyServer, tmp_path: Path, noticed: bool
) -> None:
    """Whatever a running worker declared is in the store again, its schedules with the limits: they fire."""
    ran = asyncio.Event()
    async with system(server, tmp_path) as app:

        @app.cron("* * * * *", catch_up="one", rate_limit="50/s")
        async def tick() -> None:
            ran.set()

        async with app.worker():
            inspect, schedules, site = (
                app.runtime.stores.inspect,
                app.runtime.stores.schedules,
                site_of(server, tmp_path),
            )
            assert schedules is not None
            [before] = await inspect.list_sessions()
            empty(server, "FLUSHALL")
            if noticed:
                with pytest.raises(StorageResetError):
                    while True:
                        await inspect.list_sessions()
            await adopt(site)

            async def again() -> bool:
                try:
                    sessions = await inspect.list_sessions()
                except StorageResetError:
                    return False
                return [session.id for session in sessions] not in ([], [before.id])

            await wait_until(again)
            [view] = await schedules.list_schedules()
            assert (view.name, view.declared) == ("tick", True)
            assert [rate.name for rate in await app.runtime.stores.admission.list_rates()] == ["task:tick"]
            ran.clear()
            # As if it had been declared two minutes ago: a minute is long for a test.
            server.call("HINCRBY", "{headrace}:schedule:tick", "after_at", -120_000_000)
            server.call("HDEL", "{headrace}:schedule:tick", "next_at")
            await asyncio.wait_for(ran.wait(), 20)
            assert await schedules.list_fires("tick", limit=10)


async def test_no_verb_does_anything_after_a_reset(server: ValkeyServer) -> None:
    """Every kind of verb is refused: nothing is written where the epoch is gone, and nothing is read as if empty."""
    site = RedisSite(server.url, prefix=new_prefix())
    await create_namespace(site)
    async with stores_on(site, None) as stores:
        [job] = await stores.jobs.insert_jobs([NewJob(SPEC, ARGS)])
        server.call("FLUSHALL")
        new = NewBatch(SPEC)
        verbs = [
            stores.jobs.insert_jobs([NewJob(SPEC, ARGS)]),
            stores.jobs.claim_jobs(Claim(job, "default", 1)),
            stores.jobs.rescue_jobs(limit=10),
            stores.jobs.stage_jobs(limit=10),
            stores.batches.create_batch(new, items(2)),
            stores.batches.close_batches([new.id]),
            stores.sessions.lead(job, lease=timedelta(seconds=1)),
            stores.sessions.sessions_on("host"),
            stores.control.cancel_job(job),
            stores.inspect.get_job(job),
            stores.inspect.queue_stats(),
            stores.memo.load_answer("a" * 64),
        ]
        answers = await asyncio.gather(*verbs, return_exceptions=True)
    assert [type(answer) for answer in answers] == [StorageResetError] * len(verbs)
    assert server.call("DBSIZE") == ":0"


async def test_another_store_in_the_place_of_ours_is_noticed(server: ValkeyServer) -> None:
    """A namespace that somebody made anew is not ours: a process that remembers the former one does not go on."""
    site = RedisSite(server.url, prefix=new_prefix())
    await create_namespace(site)
    async with stores_on(site, None) as stores:
        server.call("FLUSHALL")
        await create_namespace(site)
        for _ in range(3):
            with pytest.raises(StorageResetError):
                await stores.jobs.insert_jobs([NewJob(SPEC, ARGS)])
        async with stores_on(site, None) as newcomer:
            assert await newcomer.inspect.queue_stats() == []
            await adopt(site)

            async def goes_on() -> bool:
                try:
                    return bool(await stores.jobs.insert_jobs([NewJob(SPEC, ARGS)]))
                except StorageResetError:
                    return False

            await wait_until(goes_on)


async def test_data_that_come_back_are_gone_on_with(server: ValkeyServer) -> None:
    """With the data restored, epoch and all, a process goes on by itself: nobody has to adopt anything."""
    site = RedisSite(server.url, prefix=new_prefix())
    await create_namespace(site)
    async with stores_on(site, None) as stores:
        [job] = await stores.jobs.insert_jobs([NewJob(SPEC, ARGS)])
        server.call("SWAPDB", "0", "1")
        with pytest.raises(StorageResetError):
            await stores.inspect.get_job(job)
        server.call("SWAPDB", "0", "1")
        assert await stores.inspect.get_job(job) is not None


async def test_where_an_epoch_is_remembered_nothing_is_made_anew(server: ValkeyServer, tmp_path: Path) -> None:
    """A directory that remembers the epoch refuses both to open an empty store and to make it anew."""
    site = RedisSite(server.url, prefix=new_prefix(), memory=tmp_path / "directory" / "redis-epochs.json")
    await create_namespace(site)
    server.call("FLUSHALL")
    for attempt in (open_redis_stores, create_namespace):
        with pytest.raises(StorageResetError, match="remembers"):
            await attempt(site)
    with pytest.raises(StoreVersionError, match=r"headrace migrate.*If jobs were here before, do not migrate.*adopt"):
        await open_redis_stores(RedisSite(site.url, prefix=site.prefix))
    await adopt(site)
    async with stores_on(site, None) as stores:
        assert await stores.inspect.queue_stats() == []


async def test_what_a_client_remembers_needs_a_directory(tmp_path: Path) -> None:
    """A mere client leaves no files behind where there is no directory of Headrace."""
    async with empty_site() as site:
        place = RedisSite(site.url, prefix=site.prefix, memory=tmp_path / "none" / "redis-epochs.json")
        async with stores_on(place, None):
            assert not (tmp_path / "none").exists()
        (tmp_path / "none").mkdir()
        async with stores_on(place, None):
            assert site.prefix in (tmp_path / "none" / "redis-epochs.json").read_text()


async def test_a_loss_of_the_epoch_alone_is_a_loss(server: ValkeyServer) -> None:
    """Keys without an epoch are what is left of a store: neither opened nor made, until somebody adopts them."""
    site = RedisSite(server.url, prefix=new_prefix())
    await create_namespace(site)
    async with stores_on(site, None) as stores:
        [job] = await stores.jobs.insert_jobs([NewJob(JobSpec("work"), ARGS)])
    server.call("DEL", f"{site.root}:about")
    for attempt in (open_redis_stores, create_namespace):
        with pytest.raises(StorageResetError):
            await attempt(site)
    await adopt(site)
    async with AsyncExitStack() as stack:
        stores = await stack.enter_async_context(stores_on(site, None))
        assert await stores.inspect.get_job(job) is not None
