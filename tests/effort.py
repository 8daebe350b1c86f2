"""A guard against work that grows out of proportion: no stopwatch, which would judge the machine."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def bounded_work(seconds: float = 20.0) -> Iterator[None]:
    """Fail where the block takes that many seconds of processor, at least ten times what it takes as it should be.

    What would take them is work of another order: the square of its input, or a pattern that goes back for ever.
    """
    began = time.process_time()
    yield
    used = time.process_time() - began
    assert used < seconds, f"{used:.1f} s of processor: is it work of another order?"
