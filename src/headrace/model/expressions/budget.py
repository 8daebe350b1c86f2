"""What one evaluation may use: steps, depth, memory and time; the same for every expression.

There are no variables, so values only move upwards: once a part has its value, all that it was made of is gone. That
is why memory is counted in full while a part is made, and given back down to the size of its value afterwards.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from sys import getsizeof
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
#: A step that takes longer, while the collector of garbage works for the whole process, is not the expression's doing.
#: So many of them are forgiven at most.
LONG_STEP, MAX_FORGIVEN = 0.005, 4
#: Characters of one expression, and of all those in one text.
MAX_SOURCE, MAX_SOURCES = 4_096, 16_384
#: Elements of a list that count as one step.
PORTION = 32

_T = TypeVar("_T")


def _collections() -> int:
    """Return how often the collector of garbage went beyond the youngest objects.

    It is asked, and tells nothing by itself: what is raised in a callback of the collector, Ctrl-C included, is lost.
    """
    return sum(generation["collections"] for generation in gc.get_stats()[1:])


class Run:
    """One evaluation: what it sees, and what it has used so far."""

    __slots__ = ("_began", "_collections", "_forgiven", "_last", "_spent", "scope", "steps", "used")

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.steps = 0
        self.used = 0
        self._spent = 0.0
        self._forgiven, self._collections = 0, _collections()
        self._began = thread_time()
        self._last = perf_counter()

    def step(self, count: int = 1) -> None:
        """Count steps. Raises LimitFault when there were too many, or they took too long."""
        self.steps += count
        if self.steps > MAX_STEPS:
            raise LimitFault(f"it takes more than {MAX_STEPS} steps: work on smaller lists, or in several nodes")
        now = perf_counter()
        took = now - self._last
        self._last = now
        if took > LONG_STEP and self._collected():
            # As if this step had taken no time.
            self._began = thread_time() - self._spent
            return
        self._spent += took
        if self._spent > MAX_SECONDS:
            self._overdue()

    def _collected(self) -> bool:
        """Whether a long step is forgiven, since garbage was collected meanwhile."""
        before, self._collections = self._collections, _collections()
        if self._collections == before or self._forgiven >= MAX_FORGIVEN:
            return False
        self._forgiven += 1
        return True

    def _overdue(self) -> None:
        """Fail unless this thread merely waited for its turn: time that others used does not count."""
        self._spent = thread_time() - self._began
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
