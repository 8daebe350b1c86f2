"""The event loop that long-running commands and the scripted provider run on, and how tasks on any loop are ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from importlib import import_module
from typing import Any

#: Until a task that was cancelled and goes on is cancelled once more.
CANCEL_AGAIN_SECONDS = 1.0


def fastest_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes loops of uvloop where it is installed (`headrace[service]` brings it); None: asyncio's own."""
    try:
        factory: Callable[[], asyncio.AbstractEventLoop] = import_module("uvloop").new_event_loop
    except ModuleNotFoundError:
        return None
    return factory


async def end_tasks(tasks: Collection[asyncio.Task[Any]], *, again: float = CANCEL_AGAIN_SECONDS) -> None:
    """Cancel tasks until they have ended; `again`: seconds until one that goes on is cancelled once more.

    For tasks over libraries that lose a cancellation, such as redis-py: it writes under `asyncio.wait_for`, which on
    Python 3.11 swallows one that comes as the write ends (https://github.com/python/cpython/issues/86296).
    """
    ending = set(tasks)
    while ending:
        for task in ending:
            task.cancel()
        _, ending = await asyncio.wait(ending, timeout=again)
    # So that nobody is told of errors that nobody has asked for.
    await asyncio.gather(*tasks, return_exceptions=True)
