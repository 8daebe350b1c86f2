"""How commands run that stay for days: on the fastest event loop there is, and with little of the collector."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import Any, TypeVar

T = TypeVar("T")


def run_long(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end: on uvloop where it is installed (`headrace[service]` brings it), else on asyncio."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(work)


def settle() -> None:
    """Keep what was loaded until now out of every later collection: walking through it stops a process for 0.1 s."""
    gc.collect()
    gc.freeze()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        factory: Callable[[], asyncio.AbstractEventLoop] = import_module("uvloop").new_event_loop
    except ModuleNotFoundError:
        return None
    return factory
