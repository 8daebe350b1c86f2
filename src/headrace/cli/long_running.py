"""How commands run that stay for days: on the fastest event loop there is, and with little of the collector."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any, TypeVar

from headrace.event_loops import fastest_loop

T = TypeVar("T")

#: New objects, young collections and middle ones before the next greater one; Python's own are 700, 10 and 10.
THRESHOLDS = (50_000, 20, 20)


def run_long(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end: on uvloop where it is installed (`headrace[service]` brings it), else on asyncio."""
    with asyncio.Runner(loop_factory=fastest_loop()) as runner:
        return runner.run(work)


def settle() -> None:
    """Keep what was loaded until now out of every later collection: walking through it stops a process for 0.1 s.

    And collect less often: a busy service makes thousands of objects a second that live for a call, few of them in
    cycles, and Python's own thresholds cost a twelfth of its processor.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
