"""What a flush came to: its event, and the changes of its user's profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headrace.apps.memory.data.events import Tag
from headrace.apps.memory.data.profiles import Fact, ProfileChange


@dataclass(frozen=True, slots=True)
class FlushResult:
    """What the model made of a flush. One whose messages say nothing has an empty event and no change."""

    #: "en" or "zh"
    language: str
    event_tip: str = ""
    tags: tuple[Tag, ...] = ()
    #: before they were merged with the profile: what a merge that met a newer profile begins with again
    facts: tuple[Fact, ...] = ()
    changes: tuple[ProfileChange, ...] = ()
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values.

        >>> FlushResult.from_json(FlushResult("en", "- x").to_json()) == FlushResult("en", "- x")
        True
        """
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> FlushResult:
        """Return the result that `to_json` gave."""
        return cls(
            value["language"],
            value["event_tip"],
            tuple(Tag(**tag) for tag in value["tags"]),
            tuple(Fact(**fact) for fact in value["facts"]),
            tuple(ProfileChange(**change) for change in value["changes"]),
            tuple(value["warnings"]),
        )
