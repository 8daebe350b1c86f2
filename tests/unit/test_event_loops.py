"""The event loop of long-running commands, with uvloop and without it, and tasks that are ended."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from headrace.event_loops import end_tasks, fastest_loop

#: Runs the scripted provider as `python -m` does, where uvloop is not installed.
WITHOUT = """
import runpy, sys
sys.modules["uvloop"] = None
sys.argv = ["provider"]
runpy.run_module("headrace.testing.provider", run_name="__main__")
"""


def test_where_uvloop_is_missing_the_loop_is_that_of_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes with an extra that not everybody has."""
    assert fastest_loop() is not None
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert fastest_loop() is None


def test_the_scripted_provider_needs_no_uvloop() -> None:
    """Whoever has `headrace[testing]` alone can start it."""
    process = subprocess.Popen([sys.executable, "-c", WITHOUT], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert '"base_url"' in process.stdout.readline()
    finally:
        process.terminate()
        process.communicate(timeout=30)


async def test_a_task_that_lost_its_cancellation_is_ended() -> None:
    """A loop over a library that swallowed it would go on for ever, and with it the worker that stops."""
    lost, failed = 0, asyncio.create_task(_failing())

    async def loses_one() -> None:
        nonlocal lost
        while True:
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                lost += 1
                if lost == 2:
                    raise

    losing = asyncio.create_task(loses_one())
    await asyncio.gather(failed, return_exceptions=True)
    async with asyncio.timeout(10):
        await end_tasks([losing, failed], again=0.01)
    assert losing.cancelled()
    assert lost == 2


async def _failing() -> None:
    raise ValueError("it had ended before")
