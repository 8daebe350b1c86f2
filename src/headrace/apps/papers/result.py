"""What extraction gives: one result per field, with its evidence, and one per document. All of it is JSON-able."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from headrace.apps.papers.template import Value


class Status(StrEnum):
    """What became of a field."""

    #: The value and the place it stands at are known.
    FOUND = "found"
    #: The document does not say.
    NOT_REPORTED = "not_reported"
    #: The document says something, but no value is sure: a person should look.
    UNCLEAR = "unclear"
    #: The question makes no sense for this document.
    NOT_APPLICABLE = "not_applicable"


class Alignment(StrEnum):
    """How a value agrees with its quote."""

    #: The value stands there letter by letter.
    EXACT = "exact"
    #: It stands there in another notation: 1200 for 1,200, another case, dash, or a converted unit.
    NORMALISED = "normalised"
    #: At least three quarters of its words stand there, in order and close together.
    FUZZY = "fuzzy"
    #: It does not stand there; for categories and yes/no the quote may still be the evidence.
    NONE = "none"


class FieldResult(BaseModel):
    """One field of one document. `quote` is `document.text[char_start:char_end]`, always."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: Value | None = None
    status: Status
    quote: str | None = None
    page: int | None = None
    char_start: int | None = None
    char_end: int | None = None
    alignment: Alignment = Alignment.NONE
    #: For people: why the status is what it is, where that is not obvious.
    note: str = ""


class TokenCount(BaseModel):
    """What the model calls for one document cost."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input_tokens: int = 0
    output_tokens: int = 0
    #: Calls that a provider answered now.
    calls: int = 0
    #: Answers that had been paid before.
    reused: int = 0

    def __add__(self, other: TokenCount) -> TokenCount:
        """The sum of two counts.

        >>> (TokenCount(calls=1) + TokenCount(calls=2, reused=1)).calls
        3
        """
        return TokenCount(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            calls=self.calls + other.calls,
            reused=self.reused + other.reused,
        )


class DocumentResult(BaseModel):
    """All fields of one document, and what made them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    document_id: str
    name: str
    fields: dict[str, FieldResult]
    pages: int
    #: Characters of the extracted text, which the offsets count.
    characters: int
    #: Parts a long document was split into.
    chunks: int = 1
    reader: str
    model: str
    #: Version of the prompts and of the way of asking.
    prompt_version: str
    template: str
    template_version: int | str
    template_digest: str
    usage: TokenCount = TokenCount()
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """A JSON-able mapping."""
        return self.model_dump(mode="json")

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The inverse of `to_json`. Raises `pydantic.ValidationError`."""
        return cls.model_validate(data)

    def count(self, status: Status) -> int:
        """How many fields have that status."""
        return sum(result.status is status for result in self.fields.values())
