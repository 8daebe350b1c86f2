"""Nodes whose values lie in blobs: one that is lost is a failed try, storage that is away is waited for."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from headrace import App, Run, chain, choose, when
from headrace.engine.workflows import inline_calls, patience, task_part
from headrace.engine.workflows.facts import RunFacts
from headrace.model.errors import (
    BlobStoreError,
    NotFoundError,
    RunCancelledError,
    RunFailedError,
    StoreUnavailableError,
)
from headrace.model.graph.nodes import RetryRule
from headrace.model.job import JobState
from headrace.model.run import NodeEnding, NodeState
from headrace.ports.blob_store import BlobStore
from tests.unit.engine_app import quick_app
from tests.waiting import wait_until

BY_NODE = ("schedule:node_level",)
LEVELS = ["node_level", "workflow_level"]
LARGE = "x" * 100_000
MS = timedelta(milliseconds=1)


def tries(count: int) -> RetryRule:
    """Return a policy of so many tries, one right after the other."""
    return RetryRule("fixed", max_tries=count, base=MS, cap=MS, jitter=False)


def blobs_of(app: App) -> BlobStore:
    """Return the storage of an open app."""
    blobs = app.runtime.means.values.blobs
    assert blobs is not None
    return blobs


async def end_of(app: App, run: Run, path: str) -> NodeEnding:
    """Return how a node ended."""
    [ending] = await app.runtime.stores.runs.read_nodes(run.id, [path])
    return ending


class Away:
    """Storage that takes nothing while it is away, and counts what was tried."""

    def __init__(self, app: App, monkeypatch: pytest.MonkeyPatch, *, most: int = 1_000_000) -> None:
        self.put = blobs_of(app).put_blob
        #: Puts that are still to fail.
        self.left = most
        self.tried = 0
        monkeypatch.setattr(blobs_of(app), "put_blob", self._put_blob)

    async def _put_blob(self, key: str, data: bytes) -> None:
        self.tried += 1
        if self.left:
            self.left -= 1
            raise BlobStoreError(f"{key} cannot be written")
        await self.put(key, data)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at storage again soon."""
    monkeypatch.setattr(patience, "PAUSES", (0.005,))
    for module in (task_part, inline_calls):
        monkeypatch.setattr(module, "AGAIN", 20 * MS)


class Site:
    """An app whose tasks put out and take large values."""

    def __init__(self, level: str = LEVELS[0]) -> None:
        self.app = app = quick_app()
        self.level = level
        self.calls = calls = Counter[str]()

        @app.task
        async def big(value: Any = None) -> dict[str, str]:
            calls["big"] += 1
            return {"kind": "a", "text": LARGE}

        @app.task
        async def size(value: dict[str, str]) -> int:
            calls["size"] += 1
            return len(value["text"])

        @app.task
        async def bad() -> None:
            calls["bad"] += 1
            raise ValueError("no")

        self.big, self.size, self.bad = big, size, bad

    def declare(self, canvas: Any) -> None:
        """Declare the workflow `flow`."""
        self.app.workflow("flow", canvas, tags=(f"schedule:{self.level}",))


@pytest.mark.parametrize("level", LEVELS)
async def test_a_lost_blob_is_a_failed_try(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a node is given was removed: its tries are used up, and it fails with an error that names the blob."""
    site = Site(level)
    site.declare(chain(site.big.s(), site.size.s().options(retry=tries(3))))
    keys: list[str] = []
    async with site.app.worker():
        blobs = blobs_of(site.app)
        put = blobs.put_blob

        async def lose(key: str, data: bytes) -> None:
            keys.append(key)
            await put(key, data)
            await blobs.delete_blob(key)

        monkeypatch.setattr(blobs, "put_blob", lose)
        run = await site.app.start("flow")
        with pytest.raises(RunFailedError, match=r"node size: the blob .* is missing"):
            await run.result("10s")
        ending = await end_of(site.app, run, "size")
    assert ending.error is not None
    assert ending.error.kind == "blob_store"
    assert keys[0] in ending.error.message
    assert ending.attempts == 3
    assert site.calls == {"big": 1}


@pytest.mark.parametrize("level", LEVELS)
async def test_a_blob_that_is_back_at_the_next_try_is_taken(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system may show a blob late, or somebody put it back."""
    site = Site(level)
    site.declare(chain(site.big.s(), site.size.s().options(retry=tries(2))))
    async with site.app.worker():
        blobs, missing = blobs_of(site.app), iter([True])
        get = blobs.get_blob

        async def get_late(key: str) -> bytes:
            if next(missing, False):
                raise NotFoundError(key)
            return await get(key)

        monkeypatch.setattr(blobs, "get_blob", get_late)
        run = await site.app.start("flow")
        assert await run.result("10s") == len(LARGE)
        assert (await end_of(site.app, run, "size")).attempts == 2
    assert site.calls == {"big": 1, "size": 1}


@pytest.mark.parametrize("level", LEVELS)
async def test_an_output_is_held_until_storage_takes_it(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Storage is away for a while when a handler has ended: it is called once, and it was one try."""
    site = Site(level)
    site.declare(site.big.s().options(retry=tries(1)))
    async with site.app.worker():
        away = Away(site.app, monkeypatch, most=20)
        run = await site.app.start("flow")
        assert await run.result("10s") == {"kind": "a", "text": LARGE}
        assert away.tried == 21
        assert (await end_of(site.app, run, "big")).attempts == 1
    assert site.calls == {"big": 1}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("by_timeout", [False, True])
async def test_an_output_that_is_never_taken_is_a_failed_try(
    level: str, by_timeout: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the longest wait, or the job's timeout, the try has failed; the last one fails the node."""
    monkeypatch.setattr(patience, "LONGEST", 1_000 if by_timeout else 0.02)
    site = Site(level)
    limits = {"timeout": 0.1} if by_timeout else {}
    site.declare(site.big.s().options(retry=tries(2), **limits))
    async with site.app.worker():
        away = Away(site.app, monkeypatch)
        run = await site.app.start("flow")
        with pytest.raises(RunFailedError, match="cannot be written"):
            await run.result("10s")
        ending = await end_of(site.app, run, "big")
    assert ending.error is not None
    assert (ending.error.kind, ending.attempts) == ("blob_store", 2)
    assert site.calls == {"big": 2}
    assert away.tried > 2


async def test_a_task_that_may_run_at_most_once_fails_with_its_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where its output is never taken it is not called again, whatever its node allows."""
    monkeypatch.setattr(patience, "LONGEST", 0.02)
    app, calls = quick_app(), Counter[str]()

    @app.task(delivery="at_most_once")
    async def once() -> str:
        calls["once"] += 1
        return LARGE

    app.workflow("flow", once.si().options(retry=tries(3)), tags=BY_NODE)
    async with app.worker():
        Away(app, monkeypatch)
        with pytest.raises(RunFailedError, match="cannot be written"):
            await (await app.start("flow")).result("10s")
    assert calls == {"once": 1}


@pytest.mark.parametrize("level", LEVELS)
async def test_an_output_is_stored_once(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Storage is away between the output and what it decides: the output is still what the handler returned."""
    site = Site(level)
    chosen = choose(when("kind").eq("a"), site.size.s(), otherwise=site.bad.si())
    site.declare(chain(site.big.s(), chosen))
    async with site.app.worker():
        blobs, failures = blobs_of(site.app), iter([True])
        get = blobs.get_blob

        async def get_later(key: str) -> bytes:
            if next(failures, False):
                raise BlobStoreError
            return await get(key)

        monkeypatch.setattr(blobs, "get_blob", get_later)
        run = await site.app.start("flow")
        assert await run.result("10s") == len(LARGE)
    assert site.calls == {"big": 1, "size": 1}


@pytest.mark.parametrize("level", LEVELS)
async def test_a_worker_that_stops_does_not_wait_for_storage(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the grace it gives the job back, which costs none of its tries."""
    site = Site(level)
    site.declare(site.big.s().options(retry=tries(1)))
    async with site.app:
        away = Away(site.app, monkeypatch)
        async with site.app.worker(grace="10ms"):
            run = await site.app.start("flow")
            await wait_until(lambda: away.tried > 0, message="the end of the handler")
        [job] = await site.app.runtime.stores.runs.live_nodes(run.id)
        assert (job.state, job.failures) == (JobState.READY, 0)
        away.left = 0
        async with site.app.worker():
            assert await run.result("10s") == {"kind": "a", "text": LARGE}
    assert site.calls == {"big": 2}


@pytest.mark.parametrize("level", LEVELS)
async def test_a_run_is_cancelled_while_its_output_is_held(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Storage that is away does not hold up a cancel."""
    site = Site(level)
    site.declare(site.big.s())
    async with site.app.worker():
        away = Away(site.app, monkeypatch)
        run = await site.app.start("flow")
        await wait_until(lambda: away.tried > 0, message="the end of the handler")
        await run.cancel()
        with pytest.raises(RunCancelledError):
            await run.result("10s")
        assert (await end_of(site.app, run, "big")).state is NodeState.CANCELLED
    assert site.calls == {"big": 1}


async def test_a_handler_that_failed_is_not_called_again_for_a_store_that_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worker stops before the store can say what comes next: that is settled later, and the run fails."""
    site = Site()
    site.declare(site.bad.si().options(retry=tries(1)))
    async with site.app:
        known, asked = site.app.runtime.means.known, Counter[str]()
        get = known.get

        async def away(run_id: UUID) -> RunFacts:
            asked["get"] += site.calls["bad"]
            if site.calls["bad"]:
                raise StoreUnavailableError
            return await get(run_id)

        monkeypatch.setattr(known, "get", away)
        async with site.app.worker(grace="10ms"):
            run = await site.app.start("flow")
            await wait_until(lambda: asked["get"] > 0, message="the end of the handler")
        monkeypatch.setattr(known, "get", get)
        async with site.app.worker():
            with pytest.raises(RunFailedError, match="no"):
                await run.result("10s")
    assert site.calls == {"bad": 1}
