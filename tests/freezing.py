"""Processes that are frozen: a signal that was sent is on its way yet, and until it is there they go on working."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.waiting import wait_until_sync


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal; after SIGSTOP, wait until the process is frozen."""
    os.kill(pid, number)
    if number is signal.SIGSTOP:
        until_frozen(pid)


def until_frozen(pid: int) -> None:
    """Wait until a process is frozen."""
    wait_until_sync(lambda: _is_frozen(pid), message=f"process {pid} to freeze")


def _is_frozen(pid: int) -> bool:
    """Whether all threads of a process are: on a busy machine one takes the signal, and others still run."""
    states = [stat.read_text().rpartition(")")[2].split()[0] for stat in Path(f"/proc/{pid}/task").glob("*/stat")]
    return set(states) == {"T"}
