"""A call on a farm that heeds nothing: its end is stored from beside its event loop, and then its process ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, NoReturn

import pytest

from headrace import App, Backoff
from headrace import farm_overrun as module
from headrace.engine.attempt import StopReason
from headrace.farm_calls import FarmCalls
from headrace.model.errors import StoreUnavailableError
from headrace.model.farm import ENDED, Fence
from headrace.ports.stores import Stores
from headrace.settings import Settings
from tests.unit.engine_app import quick_app
from tests.unit.test_farm_calls import EndedError, calls_of, claimed
from tests.waiting import wait_until


@pytest.fixture(autouse=True)
def ends(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note why the process would have ended."""
    whys: list[str] = []

    def end(why: str) -> NoReturn:
        whys.append(why)
        raise EndedError(why)

    monkeypatch.setattr(module, "end_process", end)
    return whys


def reach(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what opens stores find those of the app, which other processes of a farm would share."""

    async def nothing() -> None:
        """Leave them open."""

    async def found(_settings: Settings, _stack: AsyncExitStack) -> Stores:
        return replace(app.runtime.stores, close=nothing)

    monkeypatch.setattr(module, "open_stores", found)


async def overrun(app: App, calls: FarmCalls, meddle: Callable[[FarmCalls], None] = lambda _: None) -> Any:
    """Let a call go on beyond its time and its process end of it; return the end that is stored, None without one."""
    freed = asyncio.Event()

    @app.task(timeout="100ms", retry=Backoff.fixed(max_attempts=2, delay="3s"))
    async def deaf() -> None:
        while not freed.is_set():
            try:
                await freed.wait()
            except asyncio.CancelledError:
                continue

    fence: Fence = await claimed(app, deaf)
    working = asyncio.create_task(calls.answer(fence))
    await wait_until(lambda: calls._running is not None and calls.overran)
    meddle(calls)
    with pytest.raises(EndedError):
        await asyncio.to_thread(module.end_overdue, calls, fence)
    stored = (await app.runtime.stores.jobs.load_steps(fence.job)).get(ENDED)
    freed.set()
    await working
    return None if stored is None else json.loads(stored)


async def test_a_handler_that_heeds_nothing_ends_with_its_time(
    ends: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its attempt has failed with `timeout`, which its retries decide over; it is no crash of its process."""
    app = quick_app()
    async with calls_of(app) as calls:
        reach(app, monkeypatch)
        kept = await overrun(app, calls)
    completion = kept["completion"]
    assert (kept["attempt"], completion["state"], completion["error"]["kind"]) == (1, "scheduled", "timeout")
    assert (completion["charged"], completion.get("lone_crash", False)) == (True, False)
    assert "heeds neither" in ends[0]


async def test_a_call_that_was_stopped_has_no_end(ends: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for it: its process ends, and nothing is stored."""
    app = quick_app()

    def stop(calls: FarmCalls) -> None:
        assert calls._running is not None
        calls._running[1].stop_reason = StopReason.LEASE_LOST

    async with calls_of(app) as calls:
        reach(app, monkeypatch)
        assert await overrun(app, calls, stop) is None
    assert len(ends) == 1


async def test_a_store_that_is_away_does_not_keep_the_process(
    ends: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It ends all the same, which counts as its death."""

    async def away(_settings: Settings, _stack: AsyncExitStack) -> Stores:
        raise StoreUnavailableError("no route")

    monkeypatch.setattr(module, "open_stores", away)
    app = quick_app()
    async with calls_of(app) as calls:
        assert await overrun(app, calls) is None
    assert "cannot be stored" in caplog.text
    assert len(ends) == 1
