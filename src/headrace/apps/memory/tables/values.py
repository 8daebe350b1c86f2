"""What the tables take and give, beside the values of `headrace.apps.memory.data`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from headrace.apps.memory.data.events import Gist
from headrace.apps.memory.data.flushes import Flush, FlushState


@dataclass(frozen=True, slots=True)
class NewBlob:
    """What one insert brings."""

    user_id: str
    #: one of BLOB_TYPES; those in PROCESSED go into the buffer
    type: str
    data: Mapping[str, Any]
    tokens: int
    #: made by the caller; the same blob again changes nothing
    id: UUID
    #: when it was said; None: now, in the order of the list
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class User:
    """Who is remembered."""

    id: str
    #: raises the priority, 1 + 0.1 per level
    level: int
    #: "en" or "zh"; None: the language of the messages
    language: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Buffer:
    """What waits of a user and is bound to no flush."""

    user_id: str
    rows: int
    tokens: int
    #: when the oldest and the newest of it came in (not when it was said); None: it is empty
    oldest_at: datetime | None
    newest_at: datetime | None
    level: int


@dataclass(frozen=True, slots=True)
class WaitingFlush:
    """A flush that may be summarised together with others."""

    flush: Flush
    level: int
    #: that the user is to be written in; None: that of the messages
    language: str | None


class Sharing(StrEnum):
    """Whether a flush is summarised with others."""

    #: it may be put into a batch
    OPEN = "open"
    #: the call of its batch is not over
    BATCHED = "batched"
    #: it has its summary, or asks for it alone
    READY = "ready"


@dataclass(frozen=True, slots=True)
class NotYet:
    """Another flush of the user is worked on, or comes before this one."""

    flush: Flush


@dataclass(frozen=True, slots=True)
class Ended:
    """Nothing is to be done for the flush: it is done or has failed, or (None) was deleted with its user."""

    state: FlushState | None


@dataclass(frozen=True, slots=True)
class Committed:
    """The flush is memory now."""

    #: None: it told of nothing
    event_id: UUID | None
    #: blobs
    processed_count: int
    #: it was so before: the answer to the first commit was lost
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class StaleSlot:
    """A slot whose version is not the one that a change was made from."""

    topic: str
    sub_topic: str
    expected_version: int
    #: 0: it is not there
    version: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """The profile is newer than the changes: nothing was written."""

    slots: tuple[StaleSlot, ...]


@dataclass(frozen=True, slots=True)
class FoundGist:
    """A gist that fits a query."""

    gist: Gist
    #: higher is better; only those of one search compare
    score: float
