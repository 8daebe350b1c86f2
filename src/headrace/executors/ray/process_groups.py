"""Groups of processes that were started here, so named that a reused number is never taken for one of them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
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


def stop_groups(groups: Sequence[ProcessGroup], *, within: float) -> None:
    """End all of them: in order, and what has not ended `within` seconds at once."""
    everyone = {one for group in groups for one in (*group.living(), *_joined_since(group))}
    for number in (signal.SIGTERM, signal.SIGKILL):
        for one in everyone:
            one.send(number)
        deadline = time.monotonic() + within
        if wait_until(lambda: not any(one.is_alive() for one in everyone), deadline, seconds=_LOOK_SECONDS):
            return


def _joined_since(group: ProcessGroup) -> tuple[ProcessId, ...]:
    """Return who is in a group now, while one who was seen in it shows that its number is still its own."""
    if any(_group_of(one.pid) == group.id for one in group.living()):
        return group.seen().members
    return ()


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
