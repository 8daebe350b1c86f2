"""Signals of a worker are its own, though Ray's core puts a handler before those of Python when it connects."""

from __future__ import annotations

import signal
import threading


def take_signals_back() -> None:
    """Let SIGTERM, which stops a worker in order, be Python's alone again: Ray would print a stack at that."""
    handler = signal.getsignal(signal.SIGTERM)
    if handler is None or threading.current_thread() is not threading.main_thread():
        return
    signal.signal(signal.SIGTERM, handler)
    # As event loops have it.
    signal.siginterrupt(signal.SIGTERM, False)
