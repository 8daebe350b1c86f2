"""What is submitted again after the loss of everything but the database: what the tables say is unfinished.

Asking twice, or submitting what goes on already, changes nothing: runs of flushes are keyed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from headrace.apps.memory.data.flushes import Flush, FlushState

#: Flushes and users that one restore names at most.
MOST_RESTORED = 10_000


class Buffered(Protocol):
    """A user's buffer."""

    @property
    def tokens(self) -> int:
        """Tokens that wait in it."""
        ...


class DurableState(Protocol):
    """What is read of the tables of memory."""

    async def list_flushes(
        self, user_id: str | None = None, state: FlushState | None = None, limit: int = 100
    ) -> Sequence[Flush]:
        """Return flushes of a state, the newest first."""
        ...

    async def idle_users(self, idle: timedelta, limit: int) -> Sequence[str]:
        """Return users into whose buffers nothing came for so long."""
        ...

    async def buffer(self, user_id: str) -> Buffered:
        """Return a user's buffer."""
        ...


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What is submitted again after the loss of everything but the database."""

    #: the first of each user, which may be worked on now; the oldest first
    first: tuple[Flush, ...]
    #: those that come after them, each once the one before it has ended
    later: tuple[Flush, ...]
    #: users with messages in their buffers
    users: tuple[str, ...]
    #: there are more: submit these, and ask again
    more: bool = False


async def restore(tables: DurableState, *, limit: int = MOST_RESTORED) -> Unfinished:
    """Return what is unfinished by the tables: flushes that wait or were worked on, and users with buffers.

    What is done is never among it. A flush that was worked on is free once its lease is over. Raises
    StoreUnavailableError.
    """
    flushes = await unfinished_flushes(tables, limit)
    users = tuple(await tables.idle_users(timedelta(), limit))
    first: dict[str, Flush] = {}
    for flush in sorted(flushes, key=lambda one: one.number):
        first.setdefault(flush.user_id, flush)
    heads = {flush.id for flush in first.values()}
    later = tuple(flush for flush in flushes if flush.id not in heads)
    more = len(flushes) >= limit or len(users) >= limit
    return Unfinished(tuple(flush for flush in flushes if flush.id in heads), later, users, more)


async def unfinished_flushes(tables: DurableState, limit: int) -> list[Flush]:
    """Return flushes that wait or are worked on, the oldest first.

    Those that wait are read before and after the others: one whose lease ends meanwhile is seen either way.
    """
    found: dict[UUID, Flush] = {}
    for state in (FlushState.WAITING, FlushState.PROCESSING, FlushState.WAITING):
        found |= {flush.id: flush for flush in await tables.list_flushes(None, state, limit)}
    return sorted(found.values(), key=lambda flush: (flush.created_at, flush.user_id, flush.number))
