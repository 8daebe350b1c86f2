"""What a book of names answers to a claim."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Reason(StrEnum):
    """Why a name was not given."""

    #: the scope holds it already
    EXACT = "exact"
    #: the scope holds one that is too alike
    SIMILAR = "similar"
    #: it equals, or is too like, a name that this very claim got
    WITHIN_BATCH = "within the batch"
    #: it has no visible character, or more than 200 characters
    NOT_A_NAME = "not a name"


@dataclass(frozen=True, slots=True)
class Rejected:
    """A name that was not given."""

    name: str
    #: the name that stands in its way; empty where it is no name
    because: str
    reason: Reason
    #: its place among the candidates
    index: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Claimed:
    """The answer to a claim. Every candidate is in exactly one of the three."""

    #: names that are the owner's now, or were before, in the order of the candidates
    accepted: tuple[str, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    #: beyond the limit: not looked at and not taken
    spare: tuple[str, ...] = ()
    #: the places of the accepted among the candidates
    indices: tuple[int, ...] = ()
