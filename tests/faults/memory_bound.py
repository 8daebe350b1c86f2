"""A bound on the memory of some processes together, and what ends the one that goes beyond it.

Where this account may make a control group, the kernel's own OOM killer does it. Elsewhere a watcher stands in for it,
outside the processes as the kernel is: it ends the largest one by SIGKILL, as earlyoom and the kubelet do.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from tests.waiting import wait_until_sync

_PAGE = os.sysconf("SC_PAGE_SIZE")
_V1 = Path("/sys/fs/cgroup/memory")
_V2 = Path("/sys/fs/cgroup")
_LOOK_SECONDS = 0.02


class Bound(Protocol):
    """A bound that processes can be put under, with the children they start from then on."""

    name: str

    def add(self, pid: int) -> None:
        """Put a process under it."""

    @property
    def kills(self) -> int:
        """How many processes it has ended."""


class Group:
    """A control group with a limit."""

    def __init__(self, folder: Path, limit_file: str, limit: int, kills_file: str) -> None:
        self.name = f"the OOM killer of the kernel in {folder}"
        self.folder = folder
        self._kills_file = folder / kills_file
        folder.mkdir()
        (folder / limit_file).write_text(str(limit))
        if not (folder / kills_file).exists():
            raise OSError("cannot count")

    def add(self, pid: int) -> None:
        """Put a process into it."""
        (self.folder / "cgroup.procs").write_text(str(pid))

    @property
    def kills(self) -> int:
        """What the kernel says."""
        lines = dict(line.split() for line in self._kills_file.read_text().splitlines())
        return int(lines["oom_kill"])

    def remove(self) -> None:
        """Wait until its processes are gone, and remove it."""
        wait_until_sync(lambda: not (self.folder / "cgroup.procs").read_text())
        self.folder.rmdir()


class Watcher:
    """Ends the largest process once all together have more than the limit."""

    name = "a watcher that sends SIGKILL"

    def __init__(self, limit: int) -> None:
        self.kills = 0
        self._limit, self._pids = limit, set[int]()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def add(self, pid: int) -> None:
        """Watch a process and its children."""
        self._pids.add(pid)

    def remove(self) -> None:
        """Watch no more."""
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            sizes = {pid: size for pid in self._family() if (size := _resident(pid))}
            if sum(sizes.values()) > self._limit:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(max(sizes, key=sizes.__getitem__), signal.SIGKILL)
                    self.kills += 1

    def _family(self) -> set[int]:
        family = set(self._pids)
        for pid in self._pids:
            for thread in Path(f"/proc/{pid}/task").glob("*/children"):
                with contextlib.suppress(OSError):
                    family |= {int(child) for child in thread.read_text().split()}
        return family


def _resident(pid: int) -> int:
    """Return the memory that a process has to itself."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * _PAGE


@contextmanager
def memory_bound(limit: int) -> Iterator[Bound]:
    """Make a bound of `limit` bytes, the most real one that this account may make."""
    bound = _group(limit) or Watcher(limit)
    try:
        yield bound
    finally:
        bound.remove()


def _group(limit: int) -> Group | None:
    name = f"test-{uuid4().hex[:12]}"
    ways = [(_V1 / name, "memory.limit_in_bytes", "memory.oom_control"), (_V2 / name, "memory.max", "memory.events")]
    for folder, limit_file, kills_file in ways:
        try:
            return Group(folder, limit_file, limit, kills_file)
        except OSError:
            with contextlib.suppress(OSError):
                folder.rmdir()
    return None
