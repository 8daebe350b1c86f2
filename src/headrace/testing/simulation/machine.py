"""What the engine asks of its machine, answered from the seed: chance, ids, and which processes live.

The engine takes clock and store as ports. A few things it asks of Python's own modules: random numbers, random bytes
and milliseconds for ids, and the process table. For the time of a run they are put in their place, and then put back.
"""

from __future__ import annotations

import gc
import logging
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from unittest.mock import patch

from headrace.engine import batches, dead_processes, shift
from headrace.engine.loops import leadership
from headrace.model.session import ProcessId
from headrace.testing.simulation.clocks import BEGINNING
from headrace.testing.simulation.loop import VirtualLoop

#: Items of a slice, so that small streams have several.
SLICE_ITEMS = 2
#: Shorter, as leases are here, so that leaders change.
TERM_LEASE = timedelta(seconds=5)
_BEGINNING_NS = int(BEGINNING.timestamp()) * 1_000_000_000


class ProcessTable:
    """The processes of the simulated hosts: whose a callback is, it is that process that asks."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        #: Where each process runs, by the name of its actor.
        self.hosts: dict[str, ProcessId] = {}
        self._gone: set[ProcessId] = set()

    def add(self, name: str, host: str) -> None:
        """Start a process on a host."""
        self.hosts[name] = ProcessId(host, len(self.hosts) + 1, 1)

    def remove(self, name: str) -> None:
        """A process is gone."""
        self._gone.add(self.hosts[name])

    def this_process(self) -> ProcessId:
        """Return who asks."""
        return self.hosts[self._loop.actor.name]

    def this_host(self) -> str:
        """Return where the one who asks runs."""
        return self.this_process().host

    def is_gone(self, process: ProcessId) -> bool:
        """Whether a process of the asking host has ended."""
        return process in self._gone


class Alarm(logging.Handler):
    """Hears of errors that the engine did not expect, which it only logs so as to go on."""

    def __init__(self, sound: Callable[[str], None]) -> None:
        super().__init__(logging.ERROR)
        self._sound = sound

    def emit(self, record: logging.LogRecord) -> None:
        """Sound the alarm for a record with a trace."""
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            self._sound(f"{record.getMessage()}: {type(error).__name__}: {error}")


@contextmanager
def simulated_machine(
    seed: int, loop: VirtualLoop, processes: ProcessTable, sound: Callable[[str], None]
) -> Iterator[None]:
    """Answer from the seed for the time of the block; `sound` hears of errors that the engine only logs."""
    chance, state = random.Random(seed), random.getstate()  # noqa: S311 - a simulation, no secrets
    random.seed(seed)
    try:
        with (
            patch.object(os, "urandom", chance.randbytes),
            patch.object(time, "time_ns", lambda: _BEGINNING_NS + int(loop.now * 1_000_000_000)),
            patch.object(shift, "this_process", processes.this_process),
            patch.object(dead_processes, "this_host", processes.this_host),
            patch.object(dead_processes, "is_gone", processes.is_gone),
            patch.object(batches, "SLICE_ITEMS", SLICE_ITEMS),
            patch.object(leadership, "TERM_LEASE", TERM_LEASE),
            _listening(Alarm(sound)),
            _without_gc(),
        ):
            yield
    finally:
        random.setstate(state)


@contextmanager
def _listening(alarm: Alarm) -> Iterator[None]:
    """Hear what the engine logs as an error; nothing else of it is heard, nor put into words."""
    logger = logging.getLogger("headrace")
    level, propagate, handlers = logger.level, logger.propagate, logger.handlers
    logger.setLevel(logging.ERROR)
    logger.propagate, logger.handlers = False, [alarm]
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.propagate, logger.handlers = propagate, handlers


@contextmanager
def _without_gc() -> Iterator[None]:
    """Collect no garbage in between: when it runs is no matter of the seed, and what it closes may run code."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
