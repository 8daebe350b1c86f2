"""How commands run that stay for days: on the fastest event loop there is, and with little of the collector."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any, TypeVar

from headrace.event_loops import fastest_loop

T = TypeVar("T")


def run_long(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end: on uvloop where it is installed (`headrace[service]` brings it), else on asyncio."""
    with asyncio.Runner(loop_factory=fastest_loop()) as runner:
        return runner.run(work)


def settle() -> None:
    """Keep what was loaded until now out of every later collection: walking through it stops a process for 0.1 s."""
    gc.collect()
    gc.freeze()
