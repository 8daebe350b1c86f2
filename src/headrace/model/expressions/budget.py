"""What one evaluation may use: steps, depth, memory and time; the same for every expression.

There are no variables, so values only move upwards: once a part has its value, all that it was made of is gone. That
is why memory is counted in full while a part is made, and given back down to the size of its value afterwards.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping
from sys import getsizeof
from threading import local
from time import perf_counter, thread_time
from typing import Any, TypeVar

from headrace.model.expressions.errors import LimitFault
from headrace.model.expressions.scope import Scope

#: Nodes of an expression that are evaluated, and portions of lists that functions go through.
MAX_STEPS = 10_000
#: How deep an expression, or a value that it makes, is nested.
MAX_DEPTH = 64
#: Bytes of memory that values take while they are made.
MAX_SIZE = 1_000_000
#: Time of the processor; parsing, which comes before, has bounds of its own and takes some milliseconds at most.
MAX_SECONDS = 0.04
#: Characters of one expression, and of all those in one text.
MAX_SOURCE, MAX_SOURCES = 4_096, 16_384
#: Elements of a list that count as one step.
PORTION = 32

_T = TypeVar("_T")


class _Collected(local):
    """How long the collector of garbage has worked in this thread: time of the whole process, not of an expression."""

    began = 0.0
    seconds = 0.0

    def note(self, phase: str, facts: Mapping[str, int]) -> None:
        """Count one run of the collector. Those of the youngest objects are short, and an expression's own doing."""
        if facts["generation"] == 0:
            return
        if phase == "start":
            self.began = thread_time()
        else:
            self.seconds += thread_time() - self.began


_collected = _Collected()
gc.callbacks.append(_collected.note)


def _worked() -> float:
    """Return the time of the processor that this thread has used, but for collecting garbage."""
    return thread_time() - _collected.seconds


class Run:
    """One evaluation: what it sees, and what it has used so far."""

    __slots__ = ("_began", "_last", "_spent", "scope", "steps", "used")

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.steps = 0
        self.used = 0
        self._spent = 0.0
        self._began = _worked()
        self._last = perf_counter()

    def step(self, count: int = 1) -> None:
        """Count steps. Raises LimitFault when there were too many, or they took too long."""
        self.steps += count
        if self.steps > MAX_STEPS:
            raise LimitFault(f"it takes more than {MAX_STEPS} steps: work on smaller lists, or in several nodes")
        now = perf_counter()
        self._spent += now - self._last
        self._last = now
        if self._spent > MAX_SECONDS:
            self._overdue()

    def _overdue(self) -> None:
        """Fail unless this thread merely waited for its turn: time that others used does not count."""
        self._spent = _worked() - self._began
        if self._spent > MAX_SECONDS:
            raise LimitFault(f"it takes longer than {MAX_SECONDS * 1000:.0f} ms: work on smaller values")

    def work(self, units: float) -> None:
        """Count work that is done at once, in units of an element each."""
        self.step(1 + int(units / PORTION))

    def each(self, values: Iterable[_T]) -> Iterator[_T]:
        """Yield values, counting the work of going through them."""
        for number, value in enumerate(values):
            if number % PORTION == 0:
                self.step()
            yield value

    def charge(self, size: float) -> None:
        """Count memory that is about to be taken. Raises LimitFault when it is too much."""
        self.used += int(size)
        if self.used > MAX_SIZE:
            raise LimitFault(f"its values take more than {MAX_SIZE // 1_000_000} MB of memory: work on smaller values")

    def keep(self, mark: int, value: Any) -> None:
        """Give back what was counted since `mark`, but for the value that came of it; lists keep what is in them."""
        if type(value) is str:
            self.used = min(self.used, mark + getsizeof(value))
        elif type(value) is not list and type(value) is not dict:
            self.used = mark
