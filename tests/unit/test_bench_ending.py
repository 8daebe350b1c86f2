"""SIGTERM ends measurements in order, wherever the event loop stands when it comes."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from contextlib import suppress

import pytest

from headrace.bench.ending import TERMINATED, left_in_order, run_in_order
from headrace.cli.exits import Exit


def test_a_block_is_left_in_order() -> None:
    """And who heard SIGTERM before hears it again."""
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended, left_in_order():
        os.kill(os.getpid(), signal.SIGTERM)
    assert (ended.value.code, signal.getsignal(signal.SIGTERM)) == (TERMINATED, before)
    assert TERMINATED == Exit.TERMINATED


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
            steps.append("ended")

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended:
        run_in_order(work())
    assert (ended.value.code, steps, signal.getsignal(signal.SIGTERM)) == (TERMINATED, ["ended"], before)


def test_an_idle_loop_is_woken() -> None:
    """The signal comes while it waits for nothing but a far-off timer."""

    async def work() -> None:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
        async with asyncio.timeout(20):
            await asyncio.Event().wait()

    began = time.monotonic()
    with pytest.raises(SystemExit) as ended:
        run_in_order(work())
    assert ended.value.code == TERMINATED and time.monotonic() - began < 15


def test_what_others_left_is_ended_in_order_too() -> None:
    """The work has ended, and the loop ends what it left behind when the signal comes: that goes on to its end."""
    steps, left = list[str](), set[asyncio.Task[None]]()

    async def leave() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(0)
            steps.append("ended")

    async def work() -> int:
        left.add(asyncio.create_task(leave()))
        await asyncio.sleep(0)
        return 7

    with pytest.raises(SystemExit) as ended:
        run_in_order(work())
    assert (ended.value.code, steps) == (TERMINATED, ["ended"])


def test_ctrl_c_reaches_the_work() -> None:
    """It is cancelled, as `asyncio.run` does, and ends in order."""
    steps = list[str]()

    async def work() -> None:
        asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGINT)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            steps.append("ended")
            raise

    with pytest.raises(KeyboardInterrupt):
        run_in_order(work())
    assert steps == ["ended"]


@pytest.mark.parametrize("fails", [True, False])
def test_it_is_told_however_the_work_ends(fails: bool) -> None:
    """In its last step, when there is nothing left to cancel, or where its own end fails."""

    async def work() -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        if fails:
            try:
                await asyncio.Event().wait()
            finally:
                raise ConnectionError("the server is away")
        return 7

    with pytest.raises(SystemExit) as ended:
        run_in_order(work())
    assert ended.value.code == TERMINATED


def test_who_does_not_end_is_told_again() -> None:
    """A cancellation may be swallowed on its way: the next SIGTERM cancels once more."""

    async def work() -> None:
        for _ in range(2):
            with suppress(asyncio.CancelledError):
                os.kill(os.getpid(), signal.SIGTERM)
                await asyncio.Event().wait()

    with pytest.raises(SystemExit):
        run_in_order(work())


def test_nothing_else_ends_so() -> None:
    """What is returned is returned, and who cancels itself is cancelled."""

    async def answer() -> int:
        return 7

    async def cancel() -> None:
        raise asyncio.CancelledError

    assert run_in_order(answer()) == 7
    with pytest.raises(asyncio.CancelledError):
        run_in_order(cancel())
