"""Groups of processes that were started here, so named that a reused number is never taken for one of them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from headrace.hosting.locks import wait_until
from headrace.hosting.processes import ProcessId, identify

_LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """A group, and those of it that were seen when it was complete: while one of these lives, its number is its own."""

    id: int
    members: tuple[ProcessId, ...]

    def seen(self) -> ProcessGroup:
        """Return the group with those who are in it now."""
        return ProcessGroup(self.id, tuple(found for pid in _pids(self.id) if (found := identify(pid)) is not None))

    def living(self) -> list[ProcessId]:
        """Return those of the members who still run."""
        return [one for one in self.members if one.is_alive()]

    def is_alive(self) -> bool:
        """Whether one of them still runs."""
        return bool(self.living())

    def stop(self, *, within: float) -> None:
        """End all of it: in order, and what has not ended `within` seconds at once."""
        mine = self.seen() if any(_group_of(one.pid) == self.id for one in self.living()) else self
        everyone = ProcessGroup(self.id, tuple({*self.living(), *mine.living()}))
        everyone._send(signal.SIGTERM)
        if not wait_until(lambda: not everyone.is_alive(), time.monotonic() + within, seconds=_LOOK_SECONDS):
            everyone._send(signal.SIGKILL)
            wait_until(lambda: not everyone.is_alive(), time.monotonic() + within, seconds=_LOOK_SECONDS)

    def _send(self, number: signal.Signals) -> None:
        for one in self.living():
            one.send(number)


def _group_of(pid: int) -> int | None:
    with contextlib.suppress(ProcessLookupError):
        return os.getpgid(pid)
    return None


def _pids(group: int) -> list[int]:
    """Return the processes of a group."""
    if sys.platform == "linux":
        everyone = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    else:
        listed = subprocess.run(["/bin/ps", "-A", "-o", "pid="], capture_output=True, text=True, check=True)
        everyone = [int(word) for word in listed.stdout.split()]
    return [pid for pid in everyone if _group_of(pid) == group]
