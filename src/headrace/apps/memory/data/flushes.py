"""A flush: blobs of one user that become memory together, once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID, uuid5

from headrace.apps.memory.data.blobs import Blob

_FLUSHES = UUID("8a1f5f52-0a55-4c3e-9d2e-63c1b6f0c1aa")


class FlushState(StrEnum):
    """Where a flush stands; `done` and `failed` hold up no later one of its user."""

    WAITING = "waiting"
    PROCESSING = "processing"
    DONE = "done"
    FAILED = "failed"


class Reason(StrEnum):
    """Why a buffer is flushed."""

    FULL = "full"
    IDLE = "idle"
    EXPLICIT = "explicit"


@dataclass(frozen=True, slots=True)
class Flush:
    """One flush. A user's are worked one after another, by their numbers."""

    #: made of the user and the sorted ids of the blobs
    id: UUID
    user_id: str
    #: in the order of time
    blob_ids: tuple[UUID, ...]
    tokens: int
    #: 1, 2, … of each user
    number: int
    state: FlushState
    reason: Reason
    created_at: datetime
    #: how often it failed for good and was taken up again
    round: int = 0
    #: of its last failure
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """A flush that is worked on: what is written for it says `fence`, which the next one to hold it raises."""

    flush: Flush
    fence: int
    #: in the order of time
    blobs: tuple[Blob, ...]


def flush_id(user_id: str, blob_ids: tuple[UUID, ...]) -> UUID:
    """Return the id of a flush: the same for the same blobs, in whatever order.

    >>> one, two = UUID(int=1), UUID(int=2)
    >>> flush_id("u", (one, two)) == flush_id("u", (two, one)) != flush_id("v", (one, two))
    True
    """
    return uuid5(_FLUSHES, "\n".join([user_id, *sorted(map(str, blob_ids))]))
