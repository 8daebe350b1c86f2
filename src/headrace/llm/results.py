"""What the LLM call returns beside the bare value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from headrace.model.usage import Usage

T = TypeVar("T")


class Provenance(StrEnum):
    """How a value came about."""

    #: The first answer was valid.
    LLM = "llm"
    #: The first answer was valid once code had read past small mistakes in its JSON; nothing was added.
    REPAIRED = "repaired"
    #: An answer was valid after the model was told what was wrong.
    REASKED = "reasked"
    #: The second model gave it.
    ESCALATED = "escalated"
    #: The caller's rule made it of what the model said.
    RULE = "rule"
    #: It is the caller's default.
    FALLBACK = "fallback"


@dataclass(frozen=True, slots=True)
class Extraction(Generic[T]):
    """A validated value and what it took."""

    value: T
    usage: Usage
    provenance: Provenance

    @property
    def calls(self) -> int:
        """Calls that were paid for."""
        return self.usage.calls

    @property
    def reused(self) -> int:
        """Answers that cost nothing, because an equal ask was paid before."""
        return self.usage.reused


@dataclass(frozen=True, slots=True)
class Completion:
    """A text and what it took."""

    text: str
    usage: Usage
    #: Whether the answer was paid before and cost nothing now.
    reused: bool
    #: Whether the text ends early, because `max_tokens` or the provider's own limit was reached.
    truncated: bool
