"""Rate limits counted on a Redis server beside the store: held by all processes, and lost without harm."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace import App, Limit
from headrace.model.errors import HeadraceError, LimitTimeoutError, NotFoundError
from headrace.model.limits import Rate
from headrace.queue_settings import LimitsSettings
from headrace.stores.redis import RedisSite, create_namespace, open_redis_limiter
from tests.backends.redis import stores_on
from tests.backends.valkey import ValkeyServer
from tests.unit.engine_app import QUICK
from tests.waiting import wait_until


@pytest.fixture
def server() -> Iterator[ValkeyServer]:
    """A server that keeps nothing on disk: what it holds may be thrown away."""
    made = ValkeyServer(port=True, appendonly="no")
    yield made
    made.remove()


def limited_app(server: ValkeyServer, started: list[float], **limit: Any) -> Any:
    """Return an app on the memory store with a task that notes when it starts."""
    app = App(settings=replace(QUICK, limits=LimitsSettings(url=server.url)))

    @app.task(queue="q", limits=[Limit("api", **limit)])
    async def call(_number: int) -> None:
        started.append(time.monotonic())

    @app.task(queue="q")
    async def free() -> str:
        return "free"

    return app, call, free


async def test_workers_share_the_buckets_of_the_server(server: ValkeyServer) -> None:
    """Three workers together start 50 jobs a second, not 150 and not half as many."""
    started: list[float] = []
    app, call, _ = limited_app(server, started, rate="50/s", burst=5)
    async with app.worker(), app.worker(), app.worker():
        batch = await app.submit(call, range(100))
        await batch.wait(timeout=20)
    seconds = started[-1] - started[0]
    assert seconds + 0.1 >= 95 / 50
    assert seconds < 95 / 50 * 2


async def test_units_that_no_job_needed_are_given_back(server: ValkeyServer) -> None:
    """Idle workers ask for units again and again; what is there for a handler is not less for it."""
    app, call, free = limited_app(server, [], rate="100/s", burst=8)
    async with app.worker(), app.worker():
        await (await call.enqueue(1)).result(timeout=10)
        await asyncio.sleep(0.1)  # in which the bucket fills
        await app.limits.set_rate("api", "1/h", burst=8)
        for _ in range(5):
            await (await free.enqueue()).result(timeout=10)
        await app.limits.take("api", 7.5, timeout=10)


async def test_a_flushed_server_is_declared_to_again(server: ValkeyServer, caplog: pytest.LogCaptureFixture) -> None:
    """FLUSHALL in the middle: the buckets are there again, empty, so that the rate is not exceeded, and jobs go on."""
    started: list[float] = []
    app, call, _ = limited_app(server, started, rate="50/s", burst=5)
    async with app.worker(), app.worker():
        batch = await app.submit(call, range(80))
        await wait_until(lambda: len(started) > 20)
        with caplog.at_level(logging.WARNING, "headrace.limits"):
            server.call("FLUSHALL")
            await batch.wait(timeout=20)
    assert "declaring it again" in caplog.text
    assert started[-1] - started[0] + 0.1 >= 75 / 50


async def test_a_rate_that_the_server_lost_can_be_closed(server: ValkeyServer) -> None:
    """What the store still knows is declared again before it is closed, so that the closing counts."""
    app, _, _ = limited_app(server, [], rate="1000/s")
    async with app:
        await app.limits.set_rate("api", "1000/s", burst=1000)
        server.call("FLUSHALL")
        await app.limits.close("api", "1h")
        with pytest.raises(LimitTimeoutError):
            await app.limits.take("api", timeout=0.05)


async def test_a_forgotten_rate_limits_neither_jobs_nor_handlers(
    server: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    """It is gone from the store and from the server; workers that knew it find out at once and ask for it no more."""
    started: list[float] = []
    app, call, _ = limited_app(server, started, rate="1/h", burst=3)
    async with app.worker():
        await app.limits.set_rate("api", "1/s", burst=1)
        batch = await app.submit(call, range(40))
        await wait_until(lambda: len(started) > 0)
        with caplog.at_level(logging.WARNING, "headrace.limits"):
            assert await app.limits.forget("api") == {"rate"}
            await batch.wait(timeout=20)
        assert caplog.text.count("declaring it again") <= 1
        assert server.call("EXISTS", "{headrace::limits}:bucket:api") == ":0"
        for gone in (app.limits.take("api"), app.limits.close("api", 1), app.limits.forget("api")):
            with pytest.raises(NotFoundError, match="'api'"):
                await gone


async def test_while_the_server_is_away_only_what_has_no_rate_starts(
    server: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that is stopped holds back the jobs with a rate limit, and no others, until it is back."""
    started: list[float] = []
    app, call, free = limited_app(server, started, rate="100/s", burst=2)
    async with app.worker():
        await wait_until(lambda: server.call("EXISTS", "{headrace::limits}:bucket:api") == ":1")
        server.stop(signal.SIGKILL)
        with caplog.at_level(logging.WARNING, "headrace.limits"):
            batch = await app.submit(call, range(5))
            assert await (await free.enqueue()).result(timeout=10) == "free"
            await wait_until(lambda: "the limiter is away" in caplog.text)
            await asyncio.sleep(0.1)
            assert not started
            server.start()
            await batch.wait(timeout=20)
    assert len(started) == 5


async def test_an_app_opens_while_the_server_is_away(server: ValkeyServer) -> None:
    """The store is there, and so is the app: what has no rate runs, the rest as soon as the server is there."""
    started: list[float] = []
    app, call, free = limited_app(server, started, rate="100/s", burst=2)
    server.stop()
    async with app.worker():
        batch = await app.submit(call, range(3))
        assert await (await free.enqueue()).result(timeout=10) == "free"
        assert not started
        server.start()
        await batch.wait(timeout=20)


async def test_a_server_that_is_frozen_holds_up_nothing_else(server: ValkeyServer) -> None:
    """One that says nothing is as good as away: what has no rate runs, before any answer has timed out."""
    started: list[float] = []
    app, call, free = limited_app(server, started, rate="100/s", burst=2)
    async with app.worker():
        await (await call.enqueue(0)).result(timeout=10)
        server.signal(signal.SIGSTOP)
        try:
            batch = await app.submit(call, range(3))
            for _ in range(2):
                assert await (await free.enqueue()).result(timeout=8) == "free"
            # A unit may have been on its way when the server froze.
            assert len(started) <= 2
        finally:
            server.signal(signal.SIGCONT)
        await batch.wait(timeout=30)
        assert len(started) == 4


async def test_jobs_larger_than_a_burst_pay_their_debt(server: ValkeyServer) -> None:
    """Jobs of 30 units at 100 units a second with a burst of 10 start three a second, not ten."""
    started: list[float] = []
    app = App(settings=replace(QUICK, limits=LimitsSettings(url=server.url)))

    @app.task(limits=[Limit("tokens", "100/s", burst=10, cost=None)], cost=30)
    async def call(_number: int) -> None:
        started.append(time.monotonic())

    async with app.worker():
        batch = await app.submit(call, range(6))
        await batch.wait(timeout=20)
    assert started[-1] - started[0] >= 5 * 0.3 - 0.1


def test_the_doctor_asks_the_server(server: ValkeyServer, tmp_path: Path) -> None:
    """A server that counts rates is a finding of its own, and a failure with its fix while it is away or frozen: told
    there, and by no log line beside it."""

    def examine() -> tuple[int, dict[str, str]]:
        words = [sys.executable, "-m", "headrace", "--url", "memory://", "doctor", "--json"]
        told = {**os.environ, "HEADRACE_LIMITS_URL": server.url}
        ended = subprocess.run(words, cwd=tmp_path, env=told, capture_output=True, text=True, timeout=60, check=False)
        assert ended.stderr == ""
        [finding] = [check for check in json.loads(ended.stdout)["checks"] if check["check"] == "limits"]
        return ended.returncode, finding

    _, finding = examine()
    assert finding["status"] == "ok"
    for stop in (signal.SIGSTOP, signal.SIGKILL):
        server.signal(stop)
        code, finding = examine()
        assert (code, finding["status"], "[limits] url" in finding["fix"]) == (1, "fail", True)


async def test_no_group_of_workers_shares_keys_with_a_limiter_beside(server: ValkeyServer) -> None:
    """A store whose group is called as the limiter's keys once were keeps its own rates on the same server."""
    site = RedisSite(server.url, group="limits", unsafe=True)
    await create_namespace(site)
    async with stores_on(site, None) as stores:
        await stores.limiter.declare({"api": Rate(1.0, 1.0)})
        beside = await open_redis_limiter(server.url, prefix=site.prefix)
        assert await beside.levels(["api"]) == {}
        await beside.close()
        assert list(await stores.limiter.levels(["api"])) == ["api"]


async def test_errors_name_the_setting_of_the_limiter(server: ValkeyServer) -> None:
    """Who reads that the server is away, refuses the user or is no address is sent to its setting, not the store's."""
    server.call("CONFIG", "SET", "requirepass", "right-hush")
    said = [await refused(url) for url in (server.url, f"{server.url}/no", f"{server.url}?ssl_ca_certs=/ca.pem")]
    server.stop(signal.SIGKILL)
    said.append(await refused(server.url))
    assert [text for text in said if "limits.url (HEADRACE_LIMITS_URL)" not in text or "queue.url" in text] == []


async def refused(url: str) -> str:
    """Return why no limiter opens."""
    with pytest.raises(HeadraceError) as caught:
        await open_redis_limiter(url)
    return str(caught.value)
