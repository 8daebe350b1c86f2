"""A profile: what is known of a user, in slots of a topic and a sub-topic."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Operation = Literal["add", "update", "delete"]


@dataclass(frozen=True, slots=True)
class Fact:
    """What the model found about a user."""

    topic: str
    sub_topic: str
    memo: str


@dataclass(frozen=True, slots=True)
class Slot:
    """What is known under a topic and a sub-topic."""

    topic: str
    sub_topic: str
    content: str
    #: 1, 2, … with each change; a change names the one that it was made from
    version: int = 1
    #: how often it was updated
    update_hits: int = 0
    updated_at: datetime | None = None

    @property
    def place(self) -> tuple[str, str]:
        """What tells it from the user's others."""
        return self.topic, self.sub_topic


@dataclass(frozen=True, slots=True)
class ProfileChange:
    """One change of a profile."""

    op: Operation
    topic: str
    sub_topic: str
    #: None of a deletion
    content: str | None
    #: the version it was made from; 0: there was none
    expected_version: int
