"""What extraction gives: one result per field, with its evidence, and one per document. All of it is JSON-able."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, NamedTuple, Self

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
    #: Two extractions say different things: a person decides between the candidates.
    NEEDS_REVIEW = "needs_review"


#: Page (from 1), x0, y0, x1, y1.
QuoteBox = tuple[int, float, float, float, float]


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


class Finding(BaseModel):
    """A value with its evidence. `quote` is `document.text[char_start:char_end]`, always."""

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
    #: Title of the section that the quote stands in, where the document has sections.
    section: str | None = None
    #: Where the quote stands on its pages, in points from the upper left corner; empty where nobody knows.
    boxes: tuple[QuoteBox, ...] = ()


class Candidate(Finding):
    """What one of two extractions says of a field they disagree on."""

    #: Who says so: the model, and the wording where one model was asked twice.
    by: str


class FieldResult(Finding):
    """One field of one document, or of one row of it."""

    #: With dual extraction: whether both say the same. None: asked once.
    agreed: bool | None = None
    #: What the first and the second say, where they disagree; else empty.
    candidates: tuple[Candidate, ...] = ()


#: One row of a group: every field of the group.
RowResult = dict[str, FieldResult]


class TokenCount(BaseModel):
    """What the model calls for one document cost."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input_tokens: int = 0
    output_tokens: int = 0
    #: Calls that a provider answered now.
    calls: int = 0
    #: Answers that had been paid before.
    reused: int = 0
    #: What the calls with a known price cost, in 1e-9 US dollars.
    cost_nano: int = 0
    #: Calls whose price nobody knows; with one of them the money is unknown.
    unpriced: int = 0

    def __add__(self, other: TokenCount) -> TokenCount:
        """The sum of two counts.

        >>> (TokenCount(calls=1) + TokenCount(calls=2, reused=1)).calls
        3
        """
        return TokenCount(**{name: getattr(self, name) + getattr(other, name) for name in TokenCount.model_fields})

    @property
    def dollars(self) -> float | None:
        """What it cost in US dollars; None where the price of a call is not known.

        >>> TokenCount(calls=1, cost_nano=2_500_000).dollars, TokenCount(calls=1, unpriced=1).dollars
        (0.0025, None)
        """
        return None if self.unpriced else self.cost_nano / 1e9


class Asking(BaseModel):
    """Who was asked, and how: a model, its provider, and the wording of the prompts."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    model: str
    provider: str = ""
    prompt_version: str
    #: sha256 (64 hex digits) of all fixed texts of the prompts.
    prompt_digest: str = ""


class DocumentResult(BaseModel):
    """All fields of one document, and what made them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    document_id: str
    name: str
    fields: dict[str, FieldResult]
    #: By the name of the group: its rows, in the order of the document. A group without rows has an empty list.
    rows: dict[str, list[RowResult]] = {}
    #: By the name of the group: what people should know of its rows, such as why there are none.
    row_notes: dict[str, str] = {}
    pages: int
    #: Characters of the extracted text, which the offsets count.
    characters: int
    #: Parts a long document was split into.
    chunks: int = 1
    reader: str
    model: str
    #: Version of the prompts and of the way of asking.
    prompt_version: str
    #: Who was asked, the first and, with dual extraction, the second.
    asked: tuple[Asking, ...] = ()
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

    def cells(self) -> Iterator[Cell]:
        """Every field of the document, then those of its rows.

        >>> yes = FieldResult(status=Status.UNCLEAR)
        >>> made = {"pages": 1, "characters": 1, "reader": "r", "model": "m", "prompt_version": "p"}
        >>> made |= {"template": "t", "template_version": 1, "template_digest": "d", "document_id": "i", "name": "n"}
        >>> result = DocumentResult(fields={"size": yes}, rows={"arm": [{"dose": yes}]}, **made)
        >>> [(cell.group, cell.row, cell.field) for cell in result.cells()]
        [('', 0, 'size'), ('arm', 1, 'dose')]
        """
        for name, found in self.fields.items():
            yield Cell("", 0, name, found)
        for group, rows in self.rows.items():
            for number, row in enumerate(rows, start=1):
                for name, found in row.items():
                    yield Cell(group, number, name, found)

    def count(self, status: Status) -> int:
        """How many fields, those of rows included, have that status."""
        return sum(cell.found.status is status for cell in self.cells())


class Cell(NamedTuple):
    """One field of a document (`group` is empty, `row` 0) or of one of its rows (`row` counts from 1)."""

    group: str
    row: int
    field: str
    found: FieldResult
