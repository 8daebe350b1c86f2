"""Feeds: ordered logs that people follow, such as what happens to one batch.

Each entry has a number, from 1, without gaps, given in the order of commits: who reads behind a number misses nothing
and reads nothing twice, also after a restart of everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from headrace.model.errors import PayloadTooLargeError
from headrace.model.names import check_key, check_name

#: Bytes of JSON of one entry at most.
MAX_ENTRY_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class NewEntry:
    """An entry to append. `data`: JSON text."""

    type: str
    data: str
    #: A feed has one entry of a key: appending it again changes nothing. None: each is another one.
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry as it stands in its feed."""

    #: From 1, without gaps until the oldest are pruned.
    seq: int
    type: str
    #: JSON text.
    data: str
    key: str | None
    #: When it was appended, by the store's clock.
    time: datetime


def check_feed(name: object) -> str:
    """Return `name` if it can name a feed: 1 to 255 printable characters. Raises InvalidInputError.

    >>> check_feed("batch:01980000-0000-7000-8000-000000000000")
    'batch:01980000-0000-7000-8000-000000000000'
    """
    return check_key("feed", name)


def check_entry_type(value: object) -> str:
    """Return `value` if it is a valid type of entry, such as "item". Raises InvalidInputError."""
    return check_name("entry type", value)


def check_entries(feed: str, entries: Sequence[NewEntry]) -> None:
    """Raise InvalidInputError unless all entries can be appended to a feed of this name.

    >>> check_entries("run:7", [NewEntry("state", '"running"', "begun")])
    """
    check_feed(feed)
    for entry in entries:
        check_entry_type(entry.type)
        if entry.key is not None:
            check_key("entry key", entry.key)
        if (size := len(entry.data.encode())) > MAX_ENTRY_BYTES:
            raise PayloadTooLargeError(
                "entry data", f"must be at most {MAX_ENTRY_BYTES} bytes of JSON", f"{size} bytes"
            )


def hint_topic(feed: str) -> str:
    """Return the topic of hints that a feed has grown.

    >>> hint_topic("run:7")
    'feed:run:7'
    """
    return f"feed:{feed}"
