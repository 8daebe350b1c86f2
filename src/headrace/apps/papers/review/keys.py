"""The hidden key of a line: where its value belongs, what the value was, and what was decided when it was written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from headrace.apps.papers.output.lines import Place, ValueLine
from headrace.apps.papers.review.decisions import Answer, Decision

_FORMAT = "review1"
_RUN_CHARS = 12


@dataclass(frozen=True, slots=True)
class Key:
    """What a line of a sheet was written for."""

    run: str
    place: Place
    #: Of the value.
    digest: str
    #: Of the decision that stood there already.
    decision: str

    @classmethod
    def of(cls, run_id: str, line: ValueLine, decision: Decision) -> Self:
        """The key of a value."""
        return cls(run_id[:_RUN_CHARS], line.place, line.digest, decision.digest)

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The key that a cell holds; None for anything else.

        >>> place = Place("d1", "arm", 2, "dose")
        >>> Key.parse(str(Key("r", place, "0f", "1a"))) == Key("r", place, "0f", "1a"), Key.parse("key")
        (True, None)
        """
        parts = text.strip().split(":")
        if len(parts) != 8 or parts[0] != _FORMAT or not parts[4].isdecimal():
            return None
        _, run, document_id, group, row, field, digest, decision = parts
        return cls(run, Place(document_id, group, int(row), field), digest, decision)

    @property
    def was_open(self) -> bool:
        """Whether nothing was decided when the line was written."""
        return self.decision.startswith(Answer.OPEN.value[0])

    def is_of(self, run_id: str) -> bool:
        """Whether the line was written by that run."""
        return self.run == run_id[:_RUN_CHARS]

    def __str__(self) -> str:
        """The text of the cell."""
        place = self.place
        parts = (_FORMAT, self.run, place.document_id, place.group, place.row, place.field, self.digest, self.decision)
        return ":".join(map(str, parts))
