"""Threads beside the event loop."""

from __future__ import annotations

import asyncio
import threading

from headrace.daemon_threads import DaemonThreads, busy_threads
from tests.waiting import wait_until


async def test_after_their_end_there_are_new_threads() -> None:
    """Those that were idle end, and what comes then does not wait for one of them."""
    threads = DaemonThreads()
    used = set[threading.Thread]()

    async def knows_it() -> bool:
        thread = await threads.run(threading.current_thread)
        return thread in used or bool(used.add(thread))

    for _ in range(3):
        # One that has come again was idle.
        await wait_until(knows_it)
        threads.end()
        await wait_until(lambda: not any(thread.is_alive() for thread in used))


async def test_a_thread_is_busy_while_it_runs_a_function() -> None:
    """One that is idle is not: a worker that ends says of busy ones that they go on."""
    threads, held = DaemonThreads(), threading.Event()
    running = asyncio.create_task(threads.run(held.wait))
    await wait_until(lambda: len(busy_threads()) == 1)
    held.set()
    assert await running
    await wait_until(lambda: not busy_threads())
    assert any(thread.name == "headrace-task" for thread in threading.enumerate())
    threads.end()
