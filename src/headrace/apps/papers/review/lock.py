"""One at a time writes into a folder of results: a review that is read back, and a run that ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Hold the folder until the block ends; waits for whoever holds it. Does nothing on systems without such locks."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(out, os.O_RDONLY)
    try:
        # A file system without locks: two commands at once are then the person's care.
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
