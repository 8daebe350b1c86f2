"""File locks that belong to one process: closed on exec and in forked children, freed by the kernel on any death."""

from __future__ import annotations

import fcntl
import os
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path

#: How often a lock or a condition held by another process is looked at again, in seconds.
POLL_SECONDS = 0.005


class FileLock:
    """A `flock` on one file. Two instances exclude one another even inside one process.

    Nothing here blocks: waiting is `wait_until(lock.try_shared, deadline)`.
    `follows_forks` keeps it open in forked children, for a lock that is handed to a child on purpose.
    """

    def __init__(self, path: Path, *, follows_forks: bool = False) -> None:
        self.path = path
        self._fd: int | None = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        if not follows_forks:
            _open_locks.add(self)

    def fileno(self) -> int:
        """The descriptor, for handing the lock to a child on purpose. Raises ValueError once closed."""
        if self._fd is None:
            raise ValueError(f"the lock {self.path} is closed")
        return self._fd

    @property
    def is_open(self) -> bool:
        """Whether the lock was neither closed nor left behind in the parent by a fork."""
        return self._fd is not None

    def try_shared(self) -> bool:
        """Take the lock together with other shared holders; False while someone holds it alone."""
        return self._try(fcntl.LOCK_SH)

    def try_exclusive(self) -> bool:
        """Take the lock alone; False while anyone else holds it."""
        return self._try(fcntl.LOCK_EX)

    def unlock(self) -> None:
        """Give the lock back and keep the file open."""
        fcntl.flock(self.fileno(), fcntl.LOCK_UN)

    def touch(self) -> None:
        """Set the file's modification time: a trace of a use shorter than the supervisor's look-out."""
        os.utime(self.fileno())

    def modified_at_ns(self) -> int:
        """The file's modification time in nanoseconds, by the machine's clock."""
        return os.fstat(self.fileno()).st_mtime_ns

    def is_deleted(self) -> bool:
        """Whether the locked file was removed, so that newcomers would lock another one. A move is no removal."""
        return os.fstat(self.fileno()).st_nlink == 0

    def close(self) -> None:
        """Give the lock back. May be called twice."""
        # No LOCK_UN: in a forked child that would free the parent's lock as well.
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def _try(self, kind: int) -> bool:
        try:
            fcntl.flock(self.fileno(), kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:  # no locks on this file system; the kernel does not say which file it was
            raise OSError(error.errno, error.strerror, str(self.path)) from error
        return True

    def __del__(self) -> None:
        self.close()


_open_locks: weakref.WeakSet[FileLock] = weakref.WeakSet()


def _close_in_child() -> None:
    # A forked child shares the open file: kept open there, the lock would outlive the user that took it.
    for lock in list(_open_locks):
        lock.close()


os.register_at_fork(after_in_child=_close_in_child)


def wait_until(condition: Callable[[], bool], deadline: float, *, seconds: float = POLL_SECONDS) -> bool:
    """Look at `condition` every few milliseconds until it holds; False when `deadline` (monotonic) has passed."""
    while not condition():
        if time.monotonic() >= deadline:
            return False
        pause(seconds)
    return True


def pause(seconds: float = POLL_SECONDS) -> None:
    """Wait for one look-out interval, in seconds."""
    threading.Event().wait(seconds)
