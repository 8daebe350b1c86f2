"""Which module each case belongs to, and how that is known."""

from __future__ import annotations

from enum import StrEnum

from headrace.apps.report.data.base import Value

#: The module of a case that nobody could tell.
UNCATEGORIZED = "Uncategorized"


class TaggedBy(StrEnum):
    """Who said so."""

    #: the sheet itself
    GIVEN = "given"
    RULE = "rule"
    MODEL = "model"
    NOBODY = "nobody"


class Assignment(Value):
    """The module of a case."""

    case_id: str
    module: str = UNCATEGORIZED
    #: 0 to 1.
    confidence: float = 0.0
    by: TaggedBy = TaggedBy.NOBODY
    #: The rule that decided, in words: 'keyword "login"'.
    rule: str = ""
    #: Modules that rules name, the likeliest first: more than one is a conflict.
    candidates: tuple[str, ...] = ()

    @property
    def is_settled(self) -> bool:
        """Whether somebody told it."""
        return self.by is not TaggedBy.NOBODY
