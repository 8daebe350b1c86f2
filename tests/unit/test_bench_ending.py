"""SIGTERM ends measurements in order, wherever the event loop stands when it comes."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from headrace.bench.ending import TERMINATED, left_in_order, run_in_order


def test_a_block_is_left_in_order() -> None:
    """And who heard SIGTERM before hears it again."""
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended, left_in_order():
        os.kill(os.getpid(), signal.SIGTERM)
    assert (ended.value.code, signal.getsignal(signal.SIGTERM)) == (TERMINATED, before)


def test_what_ends_within_the_loop_may_wait_for_it() -> None:
    """The signal comes in a callback that is to wake somebody: nothing that the loop was about to do is lost."""
    steps: list[str] = []

    async def work() -> None:
        loop, woken = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            os.kill(os.getpid(), signal.SIGTERM)
            woken.set()

        loop.call_soon(tell)
        try:
            await asyncio.Event().wait()
        finally:
            await woken.wait()
            os.kill(os.getpid(), signal.SIGTERM)  # a second one does not cut the end short
            await asyncio.sleep(0)
            steps.append("ended")

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended:
        run_in_order(work())
    assert (ended.value.code, steps, signal.getsignal(signal.SIGTERM)) == (TERMINATED, ["ended"], before)


def test_nothing_else_ends_so() -> None:
    """What is returned is returned, and who cancels itself is cancelled."""

    async def answer() -> int:
        return 7

    async def cancel() -> None:
        raise asyncio.CancelledError

    assert run_in_order(answer()) == 7
    with pytest.raises(asyncio.CancelledError):
        run_in_order(cancel())
