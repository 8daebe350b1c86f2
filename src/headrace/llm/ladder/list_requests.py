"""The requests for a list of items: the first one, and those for what failed of it.

The first request does not depend on how the list is read: a paid answer is found again by every later version. What
is asked again begins with the same messages, which providers read from their cache.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import BaseModel, create_model

from headrace.llm.first_requests import first_request
from headrace.llm.ladder.sheet import Sheet, Slot
from headrace.llm.schema import plain_schema
from headrace.model.llm import AnswerStyle, CompletionRequest, Message

M = TypeVar("M", bound=BaseModel)

#: The field of the object that holds the list: strict schemas have an object at the top.
KEY = "items"
#: Of a wrong item the model sees this much again, and this much of each that is not to be repeated.
_LONGEST_ECHO = 1_000
_LONGEST_LABEL = 40
_MOST_LABELS = 60
_ROOM_FACTOR = 2


def list_request(item: type[BaseModel], request: CompletionRequest, style: AnswerStyle) -> CompletionRequest:
    """The request for all items: by a strict schema, or in JSON mode where no strict schema can say the item."""
    plain_schema(item)
    return first_request(_holder(item), request, style)


def request_again(asked: CompletionRequest, sheet: Sheet[Any], *, attempt: int) -> CompletionRequest:
    """The request for what failed: its items by number with their errors, and no others.

    `attempt`: keeps a second ask from being the first one over again.
    """
    said = "\n".join(slot.raw[:_LONGEST_ECHO] for slot in sheet.wanted if slot.was_said)
    factor = _ROOM_FACTOR**attempt if sheet.needs_room else 1
    return replace(
        asked,
        messages=(
            *asked.messages,
            Message("assistant", said or "(nothing)"),
            Message("user", "\n".join(_words(sheet, attempt))),
        ),
        temperature=0.0,
        max_tokens=None if asked.max_tokens is None else asked.max_tokens * factor,
    )


@lru_cache(maxsize=256)
def _holder(item: type[BaseModel]) -> type[BaseModel]:
    return create_model(f"{item.__name__}List", **{KEY: (list[item], ...)})  # type: ignore[call-overload,valid-type,no-any-return]


def _words(sheet: Sheet[Any], attempt: int) -> Iterator[str]:
    again = f" (try {attempt})" if attempt > 1 else ""
    form = f'as JSON {{"{KEY}": […]}} and nothing else{again}.'
    if not sheet.slots:
        yield f"That answer holds no list of items. Answer with all items, {form}"
        return
    if sheet.has_rest:
        after = sheet.kept_until
        yield f"The list of your answer ended early: {after} items are kept."
        yield from _kept(sheet)
        yield f"Answer with the items that follow, {form}\n{json.dumps({'continue_after': after})}"
        return
    wanted = sheet.wanted
    yield f"Of the {len(sheet.slots)} items of your answer these are not valid:"
    yield from _listed(wanted)
    if not all(slot.was_said for slot in wanted):
        yield from _kept(sheet)
    these = "this 1 item" if len(wanted) == 1 else f"these {len(wanted)} items"
    numbers = json.dumps({"only_items": [slot.index + 1 for slot in wanted]})
    yield f"Answer with just {these}, complete and corrected, in this order, {form}\n{numbers}"


def _listed(failed: Sequence[Slot[Any]]) -> Iterator[str]:
    """One line for each item, or for a run of items with the same errors."""
    begin = 0
    for end in range(1, len(failed) + 1):
        first, last = failed[begin], failed[end - 1]
        if end < len(failed) and failed[end].errors == first.errors and failed[end].index == last.index + 1:
            continue
        name = f"Item {first.index + 1}" if first is last else f"Items {first.index + 1} to {last.index + 1}"
        yield f"{name}: {'; '.join(first.errors)}"
        begin = end


def _kept(sheet: Sheet[Any]) -> Iterator[str]:
    """What new items are not to repeat."""
    kept = [slot.value for slot in sheet.slots if slot.value is not None]
    if labels := [label for value in kept[-_MOST_LABELS:] if (label := _label(value))]:
        yield f"Kept, and not to be repeated: {', '.join(labels)}."


def _label(value: BaseModel) -> str:
    """What a valid item is known by: its first short text."""
    texts = (part for part in value.__dict__.values() if isinstance(part, str) and 0 < len(part) <= _LONGEST_LABEL)
    return next(texts, "")
