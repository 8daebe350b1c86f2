"""Waiting for a condition, the only way tests let time pass."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

T = TypeVar("T")

#: Generous, because the machine may be busy: a condition that holds is noticed at once anyway.
TIMEOUT = timedelta(seconds=20)
INTERVAL = timedelta(milliseconds=20)


async def wait_until(
    condition: Callable[[], T | Awaitable[T]], timeout: timedelta = TIMEOUT, *, message: str = ""
) -> T:
    """Wait until `condition()` is truthy and return its value; it may be a coroutine function.

    Raises AssertionError with `message` and the last value when `timeout` passes first.
    """
    deadline = time.monotonic() + timeout.total_seconds()
    while True:
        answer: Any = condition()
        value: T = await answer if inspect.isawaitable(answer) else answer
        if value:
            return value
        _check(deadline, value, message or _describe(condition))
        await asyncio.sleep(INTERVAL.total_seconds())


def wait_until_sync(condition: Callable[[], T], timeout: timedelta = TIMEOUT, *, message: str = "") -> T:
    """Do what `wait_until` does, for tests without an event loop."""
    deadline = time.monotonic() + timeout.total_seconds()
    pause = threading.Event()
    while not (value := condition()):
        _check(deadline, value, message or _describe(condition))
        pause.wait(INTERVAL.total_seconds())
    return value


def _check(deadline: float, value: object, what: str) -> None:
    if time.monotonic() > deadline:
        raise AssertionError(f"waited in vain for {what}; last value: {value!r}")


def _describe(condition: Callable[[], object]) -> str:
    try:
        return " ".join(inspect.getsource(condition).split())
    except (OSError, TypeError):
        return repr(condition)
