"""What extraction needs of a language model, and what every way of asking gives back.

`App.llm` has this shape; tests and other programs may bring their own object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel

from headrace.apps.papers.documents.model import Document
from headrace.apps.papers.hints import Hints
from headrace.apps.papers.result import FieldResult, RowResult, TokenCount
from headrace.apps.papers.sentences import Sentence, split_document
from headrace.apps.papers.template import TemplateField

M = TypeVar("M", bound=BaseModel)
M_co = TypeVar("M_co", bound=BaseModel, covariant=True)

#: The style of a model that must be asked plainly; all others answer JSON.
PLAIN = "plain"


class UsageLike(Protocol):
    """Tokens and calls of one ask."""

    @property
    def input_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...
    @property
    def calls(self) -> int: ...
    @property
    def reused(self) -> int: ...


class ExtractionLike(Protocol[M_co]):
    """A validated answer."""

    @property
    def value(self) -> M_co: ...
    @property
    def usage(self) -> UsageLike: ...


class CompletionLike(Protocol):
    """A text answer."""

    @property
    def text(self) -> str: ...
    @property
    def usage(self) -> UsageLike: ...


class LanguageModel(Protocol):
    """The part of `App.llm` that is used here."""

    @property
    def style(self) -> str:
        """`plain` for a weak model; anything else can answer JSON."""
        ...

    @property
    def model_name(self) -> str:
        """For the record of the run."""
        ...

    async def extract_detailed(
        self, model: type[M], *, prompt: str, system: str | None = None, temperature: float = 0.0
    ) -> ExtractionLike[M]:
        """An answer of the shape of `model`."""
        ...

    async def complete_detailed(
        self,
        *,
        messages: Sequence[Mapping[str, str]],
        stop: str | None = None,
        max_tokens: int | None = None,
        temperature: float = 0.0,
    ) -> CompletionLike:
        """The continuation of a conversation."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAsk:
    """One ask as it would be made: of `extract_detailed` where `shape` is given, else of `complete_detailed`."""

    shape: type[BaseModel] | None = None
    system: str | None = None
    prompt: str | None = None
    messages: tuple[Mapping[str, str], ...] = ()
    stop: str | None = None
    max_tokens: int | None = None
    temperature: float = 0.0
    #: How long the answer will be, as far as the template tells.
    expected_output_tokens: int = 0


class Foreseen(Protocol):
    """What asks would take. The totals leave out what is remembered, which costs nothing."""

    @property
    def remembered(self) -> Sequence[bool]:
        """For each ask, in their order: whether its answer was paid before."""
        ...

    @property
    def input_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...
    @property
    def cost_nano(self) -> int | None:
        """In 1e-9 US dollars; None: the price is not known."""
        ...

    @property
    def duration(self) -> timedelta | None:
        """At the pace that quotas and latency allow; None: not known."""
        ...

    @property
    def binding(self) -> str | None:
        """The limit that decides the duration, in words; None: not known, or nothing has to be asked."""
        ...

    def __add__(self, other: Any, /) -> Foreseen:
        """What the asks of both would take, time and limit being those of the sum."""
        ...


@runtime_checkable
class Forecast(Protocol):
    """The part of a gateway that tells beforehand; a language model may have it."""

    async def estimate(self, asks: Sequence[PlannedAsk]) -> Foreseen:
        """What these asks would take, without making any."""
        ...


@dataclass(frozen=True, slots=True)
class Material:
    """What is read to a model of one document: its sentences, and where to look first."""

    sentences: Sequence[Sentence]
    hints: Hints

    @classmethod
    def of(cls, document: Document) -> Material:
        """Split a document into its sentences."""
        sentences = split_document(document)
        return cls(sentences, Hints(document, sentences))

    def prefers(self, field: TemplateField) -> Callable[[FieldResult], bool]:
        """Whether a result's quote stands where the field's section hint points to."""
        numbers = self.hints.numbers(field)
        starts = {sentence.char_start for sentence in self.sentences if sentence.number in numbers}
        return lambda found: found.char_start in starts


@dataclass(frozen=True, slots=True)
class Answers:
    """What one way of asking gives for one document."""

    fields: dict[str, FieldResult]
    usage: TokenCount
    chunks: int = 1
    #: By the name of the group.
    rows: dict[str, list[RowResult]] = field(default_factory=dict)
    row_notes: dict[str, str] = field(default_factory=dict)
    #: False for a weak model, whose rows nobody could trust.
    rows_asked: bool = True


def counted(usage: UsageLike) -> TokenCount:
    """The usage of one ask as a value of ours. A price that nobody told is unknown, never 0."""
    return TokenCount(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        calls=usage.calls,
        reused=usage.reused,
        cost_nano=getattr(usage, "cost_nano", 0),
        unpriced=getattr(usage, "unpriced", usage.calls),
    )
