"""What a person decides of a value."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from headrace.apps.papers.output.lines import ValueLine
from headrace.apps.papers.output.model import iso_utc
from headrace.apps.papers.result import Finding, Status
from headrace.apps.papers.template import Value

#: What a verified value says, beside the statuses without a value.
REPORTED = "reported"
FIRST, SECOND = "first", "second"


class Answer(StrEnum):
    """What a person said of a value."""

    #: Nothing yet.
    OPEN = "open"
    #: It is right.
    ACCEPTED = "accepted"
    #: Another one is right.
    EDITED = "edited"
    #: It is wrong, and the right one is not given.
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person decided of a value, when, and what they noted."""

    answer: Answer = Answer.OPEN
    #: The verified value; None also where the document does not say.
    value: Value | None = None
    #: `reported`, or the status of what has no value; empty while open and when rejected.
    says: str = ""
    #: Which of two differing extractions was accepted: `first` or `second`.
    candidate: str = ""
    comment: str = ""
    reviewer: str = ""
    decided_at: datetime | None = None

    @property
    def digest(self) -> str:
        """The first letter of the answer, and 8 hex digits of all but the moment."""
        said = json.dumps(self.said(), sort_keys=True, ensure_ascii=True)
        return self.answer.value[0] + hashlib.sha256(said.encode()).hexdigest()[:8]

    def said(self) -> dict[str, Any]:
        """Everything but the moment, JSON-able."""
        return {
            "answer": self.answer.value,
            "value": self.value,
            "says": self.says,
            "candidate": self.candidate,
            "comment": self.comment,
            "reviewer": self.reviewer,
        }

    def to_json(self) -> dict[str, Any]:
        """A JSON-able mapping.

        >>> Decision.from_json(Decision(comment="look again").to_json()).comment
        'look again'
        """
        return {**self.said(), "decided_at": iso_utc(self.decided_at)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_json`. Raises `KeyError`, `ValueError`, `TypeError`."""
        moment = data.get("decided_at")
        return cls(
            Answer(data["answer"]),
            data["value"],
            data["says"],
            data["candidate"],
            data["comment"],
            data["reviewer"],
            None if moment is None else datetime.fromisoformat(moment),
        )

    def same_as(self, other: Decision) -> bool:
        """Whether both say the same, whenever they said it."""
        return replace(self, decided_at=None) == replace(other, decided_at=None)


OPEN = Decision()


def accepted(line: ValueLine, candidate: str = "") -> Decision:
    """The decision that the value of a line, or that of a candidate, is right."""
    finding: Finding = line.found
    if candidate and line.candidates is not None:
        finding = line.candidates[0 if candidate == FIRST else 1]
    return Decision(Answer.ACCEPTED, finding.value, says_of(finding), candidate)


def says_of(finding: Finding) -> str:
    """What a finding says once a person has confirmed it."""
    if finding.value is not None:
        return REPORTED
    return Status.UNCLEAR.value if finding.status is Status.FOUND else finding.status.value
