"""SIGTERM ends a measurement in order: servers are stopped, and files removed."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

#: How a process ends that SIGTERM ended, as a shell tells it.
TERMINATED = 128 + signal.SIGTERM


@contextmanager
def left_in_order() -> Iterator[None]:
    """Let SIGTERM raise SystemExit within the block, as Ctrl-C raises KeyboardInterrupt."""
    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(TERMINATED))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def run_in_order(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end; SIGTERM cancels it, each time it comes, and raises SystemExit once all has ended.

    As `asyncio.run` does for Ctrl-C: raised wherever the event loop stands, it would be lost what the loop was about to
    wake, and what is to be ended in order would wait for it without end. That holds while the loop is closed, too.
    """
    is_told, runner = False, asyncio.Runner()
    loop = runner.get_loop()
    task = loop.create_task(work)

    def cancel(number: int, frame: FrameType | None) -> None:
        nonlocal is_told
        is_told = True
        if not task.done():
            loop.call_soon_threadsafe(task.cancel)

    async def outcome() -> T:
        return await task

    before = signal.signal(signal.SIGTERM, cancel)
    try:
        with runner:
            return runner.run(outcome())
    finally:
        signal.signal(signal.SIGTERM, before)
        # However it ended: its cleanup may have failed, or it was at its end already.
        if is_told:
            sys.exit(TERMINATED)
