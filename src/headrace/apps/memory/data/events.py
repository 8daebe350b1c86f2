"""Events: what happened in a user's life, as one flush told it, and the gists it is searched by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Tag:
    """What kind of event it is, such as `emotion: glad`."""

    tag: str
    value: str


@dataclass(frozen=True, slots=True)
class UserEvent:
    """The event of one flush, whose id it has."""

    id: UUID
    user_id: str
    #: lines that begin with "- ", each a gist
    event_tip: str
    tags: tuple[Tag, ...]
    #: what it changed: `[{"content", "attributes": {"topic", "sub_topic"}}]`
    profile_delta: tuple[Mapping[str, Any], ...]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Gist:
    """One line of an event."""

    event_id: UUID
    #: from 0
    number: int
    content: str
    created_at: datetime


def gists_of(event_tip: str) -> tuple[str, ...]:
    """Return the lines of an event that are gists.

    >>> gists_of("- moved to Lyon [mention 2026-05-02] // event\\nnoise\\n-  likes rye // info")
    ('moved to Lyon [mention 2026-05-02] // event', 'likes rye // info')
    """
    lines = (line.strip() for line in event_tip.splitlines())
    return tuple(text for line in lines if line.startswith("- ") and (text := line[2:].strip()))
