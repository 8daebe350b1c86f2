"""The items of one list on their way: which are there, which are wrong, which are missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel

from headrace.llm.element_scanner import Element
from headrace.llm.items import ItemResult, OnFail, degrade
from headrace.llm.mending import mended_json
from headrace.llm.results import Provenance
from headrace.llm.validation import InvalidAnswerError, NotJsonError, validated

M = TypeVar("M", bound=BaseModel)

CUT = "it was cut off before its end"
MISSING = "it is missing"


@dataclass(slots=True, eq=False)
class Slot(Generic[M]):
    """The place of one item."""

    index: int
    value: M | None = None
    provenance: Provenance | None = None
    errors: tuple[str, ...] = ()
    raw: str = ""

    @property
    def was_said(self) -> bool:
        """Whether the model said all of it, though wrongly."""
        return bool(self.raw) and CUT not in self.errors

    def result(self, *, is_final: bool = True) -> ItemResult[M]:
        """As the caller gets it."""
        return ItemResult(self.index, self.value, self.provenance, self.errors, self.raw, is_final)


class Sheet(Generic[M]):
    """Takes elements as they come, then what was asked for again. A valid item is never touched again."""

    def __init__(self, item: type[M], expected: int | None) -> None:
        self.item, self.expected = item, expected
        self.slots: list[Slot[M]] = []
        #: The list goes on beyond what is there, nobody knows how far.
        self.has_rest = False
        #: Of what was asked last not one item came to its end.
        self.needs_room = False

    @property
    def failed(self) -> list[Slot[M]]:
        """The places without a valid item."""
        return [slot for slot in self.slots if slot.value is None]

    @property
    def wanted(self) -> list[Slot[M]]:
        """The places to ask for next; of a list that goes on only the one in which it broke off, if any."""
        if not self.has_rest:
            return self.failed
        return self.slots[-1:] if self.slots and CUT in self.slots[-1].errors else []

    @property
    def kept_until(self) -> int:
        """So many items stand before those that are wanted of a list that goes on."""
        return len(self.slots) - len(self.wanted)

    @property
    def has_too_many(self) -> bool:
        """Whether more valid items came than are to be."""
        return self.expected is not None and sum(slot.value is not None for slot in self.slots) > self.expected

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to ask for."""
        return not self.has_rest and not self.failed

    def take(self, element: Element) -> Slot[M]:
        """Put the next element of the answer in its place."""
        slot = self._added()
        self._fill(slot, element, None)
        return slot

    def end(self, *, is_list_closed: bool) -> None:
        """The answer is over: what is still missing gets its places, and pieces of broken items lose theirs."""
        if self.expected is None:
            self.has_rest = not is_list_closed
            return
        for slot in self._surplus():
            self.slots.remove(slot)
        while len(self.slots) < self.expected:
            self._added().errors = (MISSING,)

    def number(self) -> None:
        """Number the places anew, where nobody was told of them yet."""
        for index, slot in enumerate(self.slots):
            slot.index = index

    def retake(self, elements: Sequence[Element], provenance: Provenance, *, is_list_closed: bool) -> None:
        """Put what was asked for again in the places of what failed, and what follows behind them."""
        wanted = self.wanted
        if self._are_others(elements, wanted, is_list_closed=is_list_closed):
            self.note([f"{len(wanted)} items were asked for, and the answer held {len(elements)}"])
            return
        chosen = elements
        if len(elements) == len(self.slots) != len(wanted) and not self.has_rest:
            chosen = [elements[self.slots.index(slot)] for slot in wanted]  # all were given again
        for slot, element in zip(wanted, chosen, strict=False):
            self._fill(slot, element, provenance)
        if self.has_rest:
            for element in chosen[len(wanted) :]:
                self._fill(self._added(), element, provenance)
            self._end_rest(is_list_closed=is_list_closed, is_over=not elements)

    def _added(self) -> Slot[M]:
        slot: Slot[M] = Slot(len(self.slots))
        self.slots.append(slot)
        return slot

    def _end_rest(self, *, is_list_closed: bool, is_over: bool) -> None:
        self.has_rest = not is_list_closed
        if is_over and is_list_closed and self.slots and CUT in self.slots[-1].errors:
            self.slots.pop()  # the model says that nothing follows: what was cut is none

    def note(self, errors: Sequence[str]) -> None:
        """Asking again gave nothing: add why."""
        for slot in self.failed:
            slot.errors = (*slot.errors, *(error for error in errors if error not in slot.errors))

    def degrade(self, on_fail: OnFail) -> None:
        """Ask the caller's rule for what is left."""
        for slot in self.failed:
            slot.value, slot.provenance = degrade(self.item, on_fail, slot.raw, slot.errors)

    def _are_others(self, elements: Sequence[Element], wanted: list[Slot[M]], *, is_list_closed: bool) -> bool:
        """Whether nobody can tell which of the items that were asked for these are."""
        if self.has_rest or len(elements) >= len(wanted) or not is_list_closed:
            return False
        return any(slot.was_said for slot in wanted)

    def _fill(self, slot: Slot[M], element: Element, provenance: Provenance | None) -> None:
        slot.raw = element.text
        try:
            value, how = read_element(self.item, element)
        except InvalidAnswerError as error:
            slot.errors = tuple(error.errors)
        else:
            slot.value, slot.provenance, slot.errors = value, provenance or how, ()

    def _surplus(self) -> list[Slot[M]]:
        """What is too much: pieces of broken items first, then what stands last."""
        count = len(self.slots) - (self.expected or 0)
        if self.expected is None or count <= 0:
            return []
        failed = self.failed
        pieces = sorted(failed, key=lambda slot: (slot.raw.startswith("{"), -slot.index))[: min(count, len(failed))]
        rest = [slot for slot in reversed(self.slots) if slot not in pieces]
        return [*pieces, *rest[: count - len(pieces)]]


def read_element(item: type[M], element: Element) -> tuple[M, Provenance]:
    """The item this element holds, read past small mistakes where it is whole. Raises InvalidAnswerError."""
    if not element.is_closed:
        raise InvalidAnswerError([CUT])
    try:
        return validated(item, element.text), Provenance.LLM
    except NotJsonError:
        return validated(item, mended_json(element.text)), Provenance.REPAIRED
