"""Signals that end a worker: the first one politely, the second one at once."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

from headrace.cli.exits import Exit

LOG = logging.getLogger("headrace.worker")

STOPPING = (signal.SIGTERM, signal.SIGINT)


class StopSignals:
    """Calls `on_first` at the first SIGTERM or SIGINT and `on_second` at the second.

    Handlers of the interpreter, not of an event loop: a handler that blocks the loop does not block them.
    """

    def __init__(self, on_first: Callable[[], object], on_second: Callable[[], object]) -> None:
        self._on_first = on_first
        self._on_second = on_second
        self.received: signal.Signals | None = None

    def install(self) -> None:
        """Begin to listen; only in the main thread."""
        for number in STOPPING:
            signal.signal(number, self._receive)

    def _receive(self, number: int, _: FrameType | None) -> None:
        if self.received is not None:
            self._on_second()
            return
        self.received = signal.Signals(number)
        self._on_first()

    @property
    def exit_code(self) -> Exit:
        """0 after SIGTERM, which asks for an orderly end; 130 after Ctrl-C."""
        return Exit.INTERRUPTED if self.received is signal.SIGINT else Exit.OK


def exit_now() -> None:
    """End this process without another word."""
    os._exit(Exit.INTERRUPTED)


def exit_within(seconds: float, code: int) -> None:
    """End this process after `seconds` even if threads of handlers never end."""
    timer = threading.Timer(seconds, os._exit, args=(code,))
    timer.daemon = True
    timer.start()


def follow_lifeline(descriptor: int, *, within: float) -> None:
    """Stop this process when the pipe ends, that is when the supervisor is gone, however it died.

    It is asked to stop as by SIGTERM, and ended when it has not stopped `within` seconds.
    """

    def wait() -> None:
        while os.read(descriptor, 1):
            continue
        LOG.warning("the supervisor is gone: stopping")
        exit_within(within, Exit.FAILED)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="headrace-lifeline", daemon=True).start()
