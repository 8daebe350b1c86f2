"""What a supervisor and its server's processes become when one of them dies: asked of the kernel, where it can (Linux).

A server dies with its supervisor, and what a dead server leaves behind falls to the supervisor, which ends it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from headrace.hosting.locks import pause

#: Time for orphans to notice by themselves that their server is gone.
ORPHAN_GRACE_SECONDS = 1.0
_ORPHAN_LIMIT_SECONDS = 10.0
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def die_with_parent(number: signal.Signals) -> Callable[[], None] | None:
    """What a new child runs so that the kernel sends it `number` when this process dies; None where it cannot."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl  # looked up here: after the fork nothing may be loaded
    parent = os.getpid()

    def ask_kernel() -> None:
        prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
        if os.getppid() != parent:  # it died before the kernel was asked
            os._exit(1)

    return ask_kernel


def adopt_orphans() -> None:
    """Become the parent of what dead children leave behind, in place of process 1."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_orphans() -> None:
    """Wait for adopted orphans to end, killing those that do not within a second. The server itself is reaped."""
    begun_at = time.monotonic()
    while _have_children() and time.monotonic() - begun_at < _ORPHAN_LIMIT_SECONDS:
        if time.monotonic() - begun_at > ORPHAN_GRACE_SECONDS:
            for pid in _children():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        pause(0.01)


def _have_children() -> bool:
    """Whether any child is left, after reaping those that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return False
    return True


def _children() -> list[int]:
    pid = os.getpid()
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
    except OSError:
        return []
