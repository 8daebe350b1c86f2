"""A guard against work that grows out of proportion: no stopwatch, which would judge the machine."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def bounded_work(seconds: float) -> Iterator[None]:
    """Fail where the block takes more seconds of processor, its child processes included.

    Give ten times what it takes or more, and less than what it guards against: the square of its input, say.
    """
    began = sum(os.times()[:4])
    yield
    used = sum(os.times()[:4]) - began
    assert used < seconds, f"{used:.1f} s of processor: is it work of another order?"
