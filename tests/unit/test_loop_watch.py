"""The watch over the event loop of a worker, asked from another thread."""

from __future__ import annotations

import asyncio
import logging
import threading
from datetime import timedelta

import pytest

from headrace.engine.loop_watch import BLOCKED_SECONDS, LoopWatch
from headrace.engine.telemetry import Telemetry
from headrace.testing.clock import FakeClock


async def test_a_loop_that_does_not_turn_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """While it is blocked its time is a gauge, the place is logged once, and afterwards the gauge is 0 again."""
    clock, telemetry = FakeClock(), Telemetry()
    watch = LoopWatch(asyncio.get_running_loop(), clock, telemetry)
    caplog.set_level(logging.WARNING, "headrace.worker")

    def look_five_times() -> None:
        for _ in range(5):
            watch.look()
            clock.advance(timedelta(seconds=2 * BLOCKED_SECONDS))

    thread = threading.Thread(target=look_five_times)
    thread.start()
    # Blocks the loop, as a handler would.
    thread.join()
    assert telemetry.snapshot() == {
        "headrace.loop.blocked": 1,
        "headrace.loop.blocked_ms": round(8_000 * BLOCKED_SECONDS),
    }
    [record] = caplog.records
    assert "blocked for 1.0 s, at " in record.getMessage()
    assert f"{threading.__file__}:" in record.getMessage()

    await asyncio.sleep(0)
    watch.look()
    assert telemetry.snapshot() == {"headrace.loop.blocked": 1, "headrace.loop.blocked_ms": 0}


async def test_a_loop_that_turns_is_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """A loop that answers between two looks counts as nothing, and one that is asked again too soon neither."""
    clock, telemetry = FakeClock(), Telemetry()
    watch = LoopWatch(asyncio.get_running_loop(), clock, telemetry)
    for _ in range(3):
        watch.look()
        clock.advance(timedelta(seconds=BLOCKED_SECONDS / 2))
        watch.look()
        clock.advance(timedelta(seconds=10))
        await asyncio.sleep(0)
    assert telemetry.snapshot() == {"headrace.loop.blocked_ms": 0}
    assert not caplog.records


def test_a_loop_that_has_ended_is_left_alone() -> None:
    """The thread of the heartbeat may outlive the loop of its worker."""
    loop = asyncio.new_event_loop()
    telemetry = Telemetry()
    watch = LoopWatch(loop, FakeClock(), telemetry)
    loop.close()
    watch.look()
    watch.look()
    assert telemetry.snapshot() == {"headrace.loop.blocked_ms": 0}
