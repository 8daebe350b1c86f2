"""What a transaction of several statements needs: locks on rows, and the turns that others get between statements.

A verb of the memory store is one step that nobody can interrupt, so by default no lock is ever waited for and nothing
is paid for a turn. The simulation puts a `turn` in its place that gives way: there others run, as they do on a
database between the statements of one transaction, and what is not locked changes under the verb. It does so on one
event loop in one thread, where the lock of the state holds nobody back.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager

#: Awaited between two statements of one transaction.
Turn = Callable[[], Awaitable[None]]


async def straight_on() -> None:
    """Give nobody a turn."""


class RowLocks:
    """Locks on named rows, each held by one verb at a time."""

    def __init__(self) -> None:
        self._held: set[str] = set()

    @asynccontextmanager
    async def locked(self, names: Iterable[str], turn: Turn) -> AsyncIterator[None]:
        """Hold the rows for the block. They are taken in order, so that no two verbs wait for each other."""
        taken: list[str] = []
        try:
            for name in sorted(set(names)):
                await turn()
                while name in self._held:
                    await turn()
                self._held.add(name)
                taken.append(name)
            yield
        finally:
            self._held.difference_update(taken)
