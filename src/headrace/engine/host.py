"""Which processes live on this host: told apart by kernel boot, pid namespace, pid and start time."""

from __future__ import annotations

import os
import socket
import uuid
from pathlib import Path

from headrace.model.session import ProcessId


def this_host() -> str:
    """Return an id that two processes share exactly when they see the same process table."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = Path("/proc/self/ns/pid").readlink().name
    except OSError:  # not Linux: fall back to the machine; start times are unknown there
        return f"{socket.gethostname()}:{uuid.getnode():x}"
    return f"{boot}:{namespace}"


def start_time(pid: int) -> int | None:
    """Return when a process started (clock ticks since boot), 0 where that is unknown, None when it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        # Not Linux, gone, or hidden from us (a /proc mounted with hidepid shows only own processes).
        return _unknown_or_gone(pid)
    # The second field is the command in parentheses and may hold spaces; field 3 is the state, field 22 the start.
    after_command = stat.rpartition(")")[2].split()
    if after_command[0] in ("Z", "X"):
        return None
    return int(after_command[19])


def _unknown_or_gone(pid: int) -> int | None:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return 0
    return 0


def this_process() -> ProcessId:
    """Return the identity of this process."""
    return ProcessId(this_host(), os.getpid(), start_time(os.getpid()) or 0)


def is_gone(process: ProcessId) -> bool:
    """Whether a process of this host has ended, even if its pid is in use again."""
    started = start_time(process.pid)
    both_known = started and process.start_time
    return started is None or bool(both_known and started != process.start_time)
