"""Child processes that never outlive their parent."""

from __future__ import annotations

import ctypes
import signal
import sys

_SET_DEATH_SIGNAL = 1


def end_with_parent() -> None:
    """Have the kernel kill this process when its parent dies, even by SIGKILL. For `preexec_fn`; Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
