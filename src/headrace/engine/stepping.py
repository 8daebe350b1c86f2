"""Running a coroutine's first step by hand.

What needs to be set up only for a coroutine that waits is then spared for one that ends at once: `begin` it, and go on
with `resume` if it gave way. Both belong into the task that awaits the result; there is no task switch between them.
"""

from __future__ import annotations

import types
from collections.abc import Coroutine, Generator
from typing import Any


def begin(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run the first step and return what it waits for; raises StopIteration with the result of one that ended."""
    return coroutine.send(None)


@types.coroutine
def resume(coroutine: Coroutine[Any, Any, Any], awaited: Any) -> Generator[Any, Any, Any]:
    """Go on with a coroutine that waits for `awaited`, and return its result."""
    try:
        while True:
            try:
                sent = yield awaited
            except BaseException as error:
                awaited = coroutine.throw(error)
            else:
                awaited = coroutine.send(sent)
    except StopIteration as end:
        return end.value
