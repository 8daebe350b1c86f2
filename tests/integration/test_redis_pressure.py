"""A Redis server that is full, forgets its scripts, is slow, or loses links, under a running system."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from headrace import App
from headrace.model.errors import StoreUnavailableError
from headrace.model.job import Claim, JobState, NewJob
from headrace.model.session import NewSession, ProcessId
from headrace.settings import load_settings
from headrace.stores.redis import RedisSite, create_namespace, notifier
from headrace.stores.redis.faults import StoreFullError
from tests.backends.redis import new_prefix, stores_on
from tests.backends.valkey import ValkeyServer
from tests.conformance.scenario import SPEC
from tests.waiting import wait_until

#: An argument of some size: a server of a few megabytes is soon full of these.
LARGE = f'{{"args":["{"x" * 20_000}"],"kwargs":{{}}}}'
MEGABYTE = 1 << 20


@pytest.fixture
def server() -> Any:
    """Return a server of the test's own."""
    started = ValkeyServer()
    yield started
    started.remove()


@asynccontextmanager
async def app_on(server: ValkeyServer, **variables: str) -> AsyncIterator[App]:
    """Return an app on a namespace of its own."""
    environ = {"HEADRACE_URL": server.url, "HEADRACE_QUEUE_STREAM_PREFIX": new_prefix(), **variables}
    settings = load_settings(environ=environ, file=Path("missing.toml"))
    await create_namespace(RedisSite(server.url, prefix=settings.queue.stream_prefix))
    yield App(settings=settings)


def limit_memory(server: ValkeyServer, spare: int) -> None:
    """Allow a server so many bytes more than it uses now."""
    used = next(line for line in server.call("INFO", "memory").splitlines() if line.startswith("used_memory:"))
    server.call("CONFIG", "SET", "maxmemory", int(used.partition(":")[2]) + spare)


async def test_a_full_server_refuses_jobs_and_lets_running_ones_end(server: ValkeyServer) -> None:
    """At maxmemory an insert is `store_full` and leaves nothing; completions, leases and sweeps go on."""
    site = RedisSite(server.url, prefix=new_prefix())
    await create_namespace(site)
    async with stores_on(site, None) as stores:
        session = NewSession(ProcessId("host", 1, 1), "host", {"default": 10}, timedelta(minutes=5))
        await stores.sessions.register_session(session)
        limit_memory(server, 4 * MEGABYTE)
        stored = []
        with pytest.raises(StoreFullError) as caught:
            while True:
                stored += await stores.jobs.insert_jobs([NewJob(SPEC, LARGE) for _ in range(10)])
        assert (caught.value.code, caught.value.transient) == ("store_full", True)
        assert "nothing was accepted" in str(caught.value)
        refused = NewJob(SPEC, LARGE)
        with pytest.raises(StoreFullError):
            await stores.jobs.insert_jobs([refused])
        assert await stores.inspect.known_jobs([refused.id]) == frozenset()
        jobs = await stores.jobs.claim_jobs(Claim(session.id, "default", 1_000))
        assert {job.id for job in jobs} == set(stored)
        assert (await stores.sessions.renew_session(session.id, lease=session.lease, stats={})).alive
        done = [_done(job) for job in jobs]
        assert len(await stores.jobs.complete_jobs(session.id, done)) == len(stored)
        assert len(await stores.inspect.final_jobs(stored)) == len(stored)
        # With what has ended removed there is room again.
        await _remove_all(stores)
        assert await stores.jobs.insert_jobs([refused]) == [refused.id]


def _done(job: Any) -> Any:
    from headrace.model.job import Completion

    return Completion(job.id, job.attempt, JobState.SUCCEEDED, result="1")


async def _remove_all(stores: Any) -> None:
    from headrace.model.stats import Retention

    nothing = timedelta()
    kept = Retention(succeeded=nothing, failed=nothing, cancelled=nothing, answers=nothing)
    await stores.jobs.prune_jobs(kept, limit=100_000)


async def test_a_full_server_under_load_loses_nothing(server: ValkeyServer) -> None:
    """Submitters are refused clearly while workers go on; with more memory everything that was accepted is done."""
    async with app_on(server) as app:

        @app.task
        async def measure(text: str) -> int:
            await asyncio.sleep(0)
            return len(text)

        accepted = []
        async with app:
            limit_memory(server, 3 * MEGABYTE)
            with pytest.raises(StoreUnavailableError) as caught:
                while True:
                    accepted.append(await measure.enqueue("x" * 20_000))
            assert caught.value.code == "store_full"
            async with app.worker():
                assert [await job.result(20) for job in accepted] == [20_000] * len(accepted)
                server.call("CONFIG", "SET", "maxmemory", "0")
                assert await (await measure.enqueue("more")).result(10) == 4
        assert len(accepted) > 20


async def test_scripts_that_are_forgotten_are_sent_again(server: ValkeyServer) -> None:
    """SCRIPT FLUSH again and again under load: nobody notices, and each job runs once."""
    runs: list[int] = []
    async with app_on(server) as app:

        @app.task
        async def count(number: int) -> int:
            runs.append(number)
            return number

        async with app.worker():
            flushing = asyncio.create_task(flush_scripts(server))
            batch = await app.submit(count, range(2_000))
            assert (await batch.wait(30)).outcome == "succeeded"
            flushing.cancel()
    assert sorted(runs) == list(range(2_000))


async def flush_scripts(server: ValkeyServer) -> None:
    """Let the server forget its scripts all the time."""
    while True:
        await asyncio.to_thread(server.call, "SCRIPT", "FLUSH", "SYNC")


async def test_a_server_that_sleeps_costs_no_lease(server: ValkeyServer) -> None:
    """A server that answers nothing for five seconds holds everybody up, and nothing is lost or run twice."""
    runs: list[int] = []
    async with app_on(server) as app:

        @app.task
        async def count(number: int) -> int:
            runs.append(number)
            await asyncio.sleep(0.01)
            return number

        async with app.worker():
            batch = await app.submit(count, range(200))
            sleeping = asyncio.create_task(asyncio.to_thread(server.call, "DEBUG", "SLEEP", "5"))
            assert (await batch.wait(30)).outcome == "succeeded"
            await sleeping
            [session] = await app.runtime.stores.inspect.list_sessions()
            assert "headrace.sessions.lost" not in session.stats
    assert sorted(runs) == list(range(200))


async def test_links_that_are_cut_are_made_again(server: ValkeyServer) -> None:
    """Every connection killed again and again under load: all that was accepted is done once, and the pool is kept."""
    runs: list[int] = []
    async with app_on(server, HEADRACE_QUEUE_MAX_POOL_SIZE="4") as app:

        @app.task
        async def count(number: int) -> int:
            runs.append(number)
            await asyncio.sleep(0.005)
            return number

        async with app.worker():
            batch = await app.submit(count, range(500))
            for _ in range(10):
                server.call("CLIENT", "KILL", "TYPE", "NORMAL", "SKIPME", "YES")
                server.call("CLIENT", "KILL", "TYPE", "PUBSUB")
                await asyncio.sleep(0.05)
            assert (await batch.wait(30)).outcome == "succeeded"
            values = [item.result async for item in batch.results()]
            links = [line for kind in ("NORMAL", "PUBSUB") for line in listed(server, kind)]
            assert len(links) <= 4
    assert sorted(values) == list(range(500))
    assert set(runs) == set(values)


async def test_an_outage_is_said_once_by_each_loop(server: ValkeyServer, caplog: pytest.LogCaptureFixture) -> None:
    """While the server is away a worker of three queues says so in a few lines, not with each of its tries."""
    async with app_on(server, HEADRACE_WORKER_POLL_INTERVAL="0.05", HEADRACE_WORKER_HEARTBEAT_INTERVAL="0.2") as app:

        async def nothing() -> None: ...

        work = [app.task(name=queue, queue=queue)(nothing) for queue in "abc"]
        async with app.worker():
            await (await work[0].enqueue()).result(20)
            with caplog.at_level(logging.WARNING, "headrace"):
                server.stop()
                await wait_until(lambda: sum(record.name == "headrace.heartbeat" for record in caplog.records) > 5)
            server.start()
    said = [text.partition(", trying again")[0] for text in caplog.messages if ", trying again" in text]
    assert {f"cannot claim from {queue}" for queue in "abc"} < set(said)
    assert max(Counter(said).values()) <= 2  # one for each kind of error


def listed(server: ValkeyServer, kind: str) -> list[str]:
    """Return the connections of a kind but the one that asks."""
    lines = server.call("CLIENT", "LIST", "TYPE", kind).splitlines()
    return [line for line in lines if "cmd=client|list" not in line]


async def test_the_pool_is_never_exceeded(server: ValkeyServer) -> None:
    """Four hundred callers at once share the connections that a process may have."""
    site = RedisSite(server.url, prefix=new_prefix())
    await create_namespace(site)
    async with stores_on(site, None, max_pool_size=5) as stores:
        await stores.notifier.subscribe(lambda _: None)
        ids = await asyncio.gather(*(stores.jobs.insert_jobs([NewJob(SPEC, LARGE)]) for _ in range(400)))
        assert len(listed(server, "NORMAL")) <= 3
        assert len(listed(server, "PUBSUB")) == 1
        assert len({job for [job] in ids}) == 400


async def test_callers_that_give_up_leave_the_connection_good(server: ValkeyServer) -> None:
    """A call that is cancelled on its way takes no answer from another: each gets its own."""
    site = RedisSite(server.url, prefix=new_prefix())
    await create_namespace(site)
    async with stores_on(site, None, max_pool_size=4) as stores:
        keys = [uuid4().hex * 2 for _ in range(300)]
        calls = [asyncio.create_task(stores.memo.load_answer(key)) for key in keys]
        await asyncio.sleep(0)
        for call in calls[::2]:
            call.cancel()
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert answers[1::2] == [None] * 150
        jobs = await asyncio.gather(*(stores.jobs.insert_jobs([NewJob(SPEC, f'{{"args":[{n}],"kwargs":{{}}}}')])
                                      for n in range(200)))  # fmt: skip
        views = await asyncio.gather(*(stores.inspect.get_job(job) for [job] in jobs))
        assert [view.args["args"] for view in views if view] == [[number] for number in range(200)]


async def test_hints_cross_processes_also_after_a_cut(server: ValkeyServer) -> None:
    """Another store hears a topic, once for a flood of it, and again after its listening connection was cut."""
    site = RedisSite(server.url, prefix=new_prefix())
    await create_namespace(site)
    async with stores_on(site, None) as speaker, stores_on(site, None) as listener:
        heard: list[str] = []
        await listener.notifier.subscribe(heard.append)
        speaker.notifier.hint("queue:a")
        await wait_until(lambda: heard == ["queue:a"])
        for _ in range(1_000):
            speaker.notifier.hint("queue:b")
        await wait_until(lambda: "queue:b" in heard)
        assert heard.count("queue:b") <= 40
        server.call("CLIENT", "KILL", "TYPE", "PUBSUB")
        await wait_until(lambda: len(listed(server, "PUBSUB")) == 1)

        def again() -> bool:
            speaker.notifier.hint("done")
            return "done" in heard

        await wait_until(again)


async def test_a_listening_link_that_is_silent_is_made_again(
    server: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listening connection that answers nothing is given up for another one, and hints are heard again."""
    monkeypatch.setattr(notifier, "CHECK_EVERY", 0.05)
    monkeypatch.setattr(notifier, "CHECK_TIMEOUT", 0.1)
    site = RedisSite(server.url, prefix=new_prefix())
    await create_namespace(site)
    async with stores_on(site, None) as speaker, stores_on(site, None) as listener:
        heard: list[str] = []
        await listener.notifier.subscribe(heard.append)
        [before] = map(link_id, listed(server, "PUBSUB"))
        await asyncio.to_thread(server.call, "DEBUG", "SLEEP", "1")
        await wait_until(lambda: [*map(link_id, listed(server, "PUBSUB"))] not in ([], [before]))

        def again() -> bool:
            speaker.notifier.hint("done")
            return "done" in heard

        await wait_until(again)


def link_id(line: str) -> str:
    """Return the id of a connection that CLIENT LIST tells of."""
    return line.partition(" ")[0]
