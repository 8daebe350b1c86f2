"""Names that are used once within a scope."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID


@dataclass(frozen=True, slots=True)
class NewName:
    """A name to be taken. Two names are the same when their keys are."""

    #: the normalised name
    key: str
    #: the name as it is shown
    name: str
    #: whoever takes it: claiming it again takes it again
    owner: UUID


@dataclass(frozen=True, slots=True)
class KnownName:
    """A name that is taken."""

    key: str
    name: str
    owner: UUID
    #: its number in the scope, from 1, in the order of taking; numbers of released names are not used again
    position: int


@dataclass(frozen=True, slots=True)
class ClaimedNames:
    """The answer to a claim: either what was taken, or what the caller has to compare its names with first."""

    #: keys that are the caller's now, or were before, each with its position
    taken: Mapping[str, int] = field(default_factory=dict)
    #: names that came since the caller looked; then nothing was taken
    newer: tuple[KnownName, ...] = ()
