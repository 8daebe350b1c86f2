"""The items of a list that a model answered: each with its value or its errors, and how it came about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel

from headrace.llm.results import Provenance
from headrace.model.errors import InvalidInputError
from headrace.model.usage import Usage

T = TypeVar("T")

#: What to do with an item that no ask made valid: label it, take this value, or ask a rule, which is given what the
#: model said last (may be empty) and the errors, and returns an item or None.
OnFail = Literal["needs_review"] | BaseModel | Callable[[str, tuple[str, ...]], Any]


@dataclass(frozen=True, slots=True)
class ItemResult(Generic[T]):
    """One item of a list."""

    #: Its place in the list, from 0.
    index: int
    #: None where it needs review.
    value: T | None
    #: None where it needs review.
    provenance: Provenance | None
    #: What was wrong with it last, one line each; of a valid item empty.
    errors: tuple[str, ...] = ()
    #: What the model said of it last; empty where it said nothing.
    raw: str = ""
    #: False while it is still to be asked for again; it then comes once more, with the same index.
    is_final: bool = True

    @property
    def needs_review(self) -> bool:
        """Whether nobody, no model and no rule, could give a valid value."""
        return self.value is None


@dataclass(frozen=True, slots=True)
class Items(Generic[T]):
    """The items of a list in their order, and what they took."""

    results: tuple[ItemResult[T], ...]
    usage: Usage
    #: False where the answer was cut, the number of items was not known, and the rest could not be asked for.
    is_complete: bool = True

    @property
    def values(self) -> list[T]:
        """The values there are, in order."""
        return [result.value for result in self.results if result.value is not None]

    @property
    def needs_review(self) -> list[ItemResult[T]]:
        """The items without a value."""
        return [result for result in self.results if result.needs_review]

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[ItemResult[T]]:
        return iter(self.results)

    def __getitem__(self, index: int) -> ItemResult[T]:
        return self.results[index]


def degrade(item: type[T], on_fail: OnFail, raw: str, errors: Sequence[str]) -> tuple[T | None, Provenance | None]:
    """What the caller's rule makes of an item that never became valid. Raises InvalidInputError for another type."""
    if on_fail == "needs_review":
        return None, None
    if isinstance(on_fail, item):
        return on_fail, Provenance.FALLBACK
    if not callable(on_fail):
        raise InvalidInputError("on_fail", f"must be 'needs_review', a {item.__name__} or a function", on_fail)
    value = on_fail(raw, tuple(errors))
    if value is None:
        return None, None
    if not isinstance(value, item):
        raise InvalidInputError("on_fail", f"must return a {item.__name__} or None", value)
    return value, Provenance.RULE
