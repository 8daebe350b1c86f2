"""Cancelling a task at any of its awaits."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Coroutine, Generator
from functools import partial
from typing import Any


@types.coroutine
def cancelling(call: Coroutine[Any, Any, Any], at: int, later: float = 0.0) -> Generator[Any, Any, Any]:
    """Run a coroutine and cancel its task when it waits for the `at`-th time, or so many seconds after that."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    waits, timer, step = 0, None, partial(call.send, None)
    try:
        while True:
            awaited = step()
            waits += 1
            if waits == at:
                timer = loop.call_later(later, task.cancel)
            try:
                sent = yield awaited
            except BaseException as error:
                step = partial(call.throw, error)
            else:
                step = partial(call.send, sent)
    except StopIteration as end:
        return end.value
    finally:
        if timer is not None:
            timer.cancel()


async def cancel_at(call: Coroutine[Any, Any, Any], at: int, later: float = 0.0) -> bool:
    """Run a coroutine as a task that is cancelled at its `at`-th wait; return whether that ended it.

    What it raises besides is raised here.
    """
    task = asyncio.create_task(cancelling(call, at, later))
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
    return task.cancelled()
