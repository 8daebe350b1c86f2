"""Processes named so that a reused pid is never taken for the one that died."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ProcessId:
    """One process: its pid and when it started, in the kernel's own notation."""

    pid: int
    started: str

    def is_alive(self) -> bool:
        """Whether this very process still runs; a zombie does not."""
        return identify(self.pid) == self

    def send(self, number: signal.Signals) -> None:
        """Send a signal, if this very process still runs."""
        if self.is_alive():
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return


def identify(pid: int) -> ProcessId | None:
    """The process with this pid, or None when there is none or only its zombie."""
    return _identify_by_proc(pid) if sys.platform == "linux" else _identify_by_ps(pid)


def _identify_by_proc(pid: int) -> ProcessId | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name in the second field may hold blanks and brackets, so fields are counted from its end.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else ProcessId(pid, fields[19])


def _identify_by_ps(pid: int) -> ProcessId | None:
    command = ["/bin/ps", "-o", "state=,lstart=", "-p", str(pid)]
    shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603
    state, _, started = shown.partition(" ")
    return None if not state or state.startswith("Z") else ProcessId(pid, started.strip())


@cache
def machine() -> str:
    """Where pids and loopback ports mean the same: one boot of one kernel, and two namespaces of it."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return " ".join([boot, *(str(Path("/proc/self/ns", kind).readlink()) for kind in ("pid", "net"))])
    except OSError:
        return socket.gethostname()
