"""Faults that lie in the model's words: the text it should have said, spoiled the same way in every run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from headrace.testing.provider.chat import ChatRequest, Reply
from headrace.testing.provider.faults import FaultKind, Strike
from headrace.testing.provider.listed import element_spans, list_in

Spoil = Callable[[str, ChatRequest, Strike], Reply]


def spoiled(text: str, request: ChatRequest, strike: Strike | None) -> Reply:
    """What is said instead of `text`; the text itself where the fault lies elsewhere or there is none."""
    spoil = _SPOILED.get(strike.kind) if strike else None
    return Reply(text=text) if spoil is None or strike is None else spoil(text, request, strike)


def cut_at(text: str, strike: Strike) -> int:
    """The character after which a stream ends that is cut: after so many elements or characters, else in the middle."""
    fault = strike.fault
    if fault.after_items is not None and (spans := element_spans(text)):
        return len(text) if fault.after_items > len(spans) else _end_of(spans, fault.after_items)
    return min(len(text), len(text) // 2 if fault.after_characters is None else fault.after_characters)


def _end_of(spans: list[tuple[int, int]], items: int) -> int:
    return spans[items - 1][1] if items else spans[0][0]


def _length(text: str, request: ChatRequest, strike: Strike) -> Reply:
    """Cut in the middle of an element: the one after `after_items`, else the one in the middle of the text."""
    spans, fault = element_spans(text), strike.fault
    at = max(1, len(text) // 2) if fault.after_characters is None else fault.after_characters
    if spans and fault.after_characters is None:
        middle = next((number for number, (_, end) in enumerate(spans) if end > at), len(spans) - 1)
        start, end = spans[min(middle if fault.after_items is None else fault.after_items, len(spans) - 1)]
        at = max(start + 1, (start + end) // 2)
    return Reply(text=text[:at], finish_reason="length")


def _wrong_types(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _wrong_types(part) for name, part in value.items()}
    if isinstance(value, list):
        return "not a list"
    return ["neither", "text", "nor", "number"]


def _wrong_type(text: str, request: ChatRequest, strike: Strike) -> Reply:
    try:
        return Reply(text=json.dumps(_wrong_types(json.loads(text))))
    except ValueError:
        return Reply(text="[1, 2]")


def _bad_item(text: str, request: ChatRequest, strike: Strike) -> Reply:
    """Some elements of the list, or the one object where there is no list, break the schema; the others stay."""
    try:
        value = json.loads(text)
    except ValueError:
        return Reply(text=text)
    listed = list_in(value)
    if listed is None:
        return Reply(text=json.dumps(_broken(value, strike.draw("field"))))
    for index in _chosen(len(listed), strike):
        listed[index] = _broken(listed[index], strike.draw(f"field of {index}"))
    return Reply(text=json.dumps(value))


def _chosen(length: int, strike: Strike) -> list[int]:
    fault = strike.fault
    if fault.items:
        return [number - 1 for number in fault.items if 1 <= number <= length]
    if fault.item_rate is not None:
        return [index for index in range(length) if strike.draw(f"item {index}") < fault.item_rate]
    return [int(strike.draw("item") * length)] if length else []


def _broken(value: Any, share: float) -> Any:
    """The value with a part of a type that no schema of it allows."""
    if isinstance(value, Mapping) and value:
        names = sorted(value)
        name = names[int(share * len(names))]
        return {**value, name: _broken_part(value[name])}
    return _broken_part(value)


def _broken_part(value: Any) -> Any:
    return "not what was asked" if isinstance(value, list | Mapping) else {"unexpected": True}


def _malformed(text: str, request: ChatRequest, strike: Strike) -> Reply:
    """JSON that a person would still read: with a trailing comma, in a fence, with the wrong quotes, or without."""
    styles = [strike.fault.style] if strike.fault.style else sorted(_STYLES)
    return Reply(text=_STYLES[styles[int(strike.draw("style") * len(styles))]](text))


def _trailing_comma(text: str) -> str:
    return re.sub(r"(?<=[^\s\[{,])(\s*[\]}]\s*)$", r",\1", text)


def _code_fence(text: str) -> str:
    return f"Here is the JSON you asked for:\n```json\n{text}\n```"


def _single_quotes(text: str) -> str:
    return _trailing_comma(text) if "'" in text or "\\" in text else text.replace('"', "'")


def _bare_keys(text: str) -> str:
    return re.sub(r'(?<=[{,])(\s*)"(\w+)"(?=\s*:)', r"\1\2", text)


_STYLES: Mapping[str, Callable[[str], str]] = {
    "trailing_comma": _trailing_comma,
    "code_fence": _code_fence,
    "single_quotes": _single_quotes,
    "bare_keys": _bare_keys,
}

_SPOILED: Mapping[FaultKind, Spoil] = {
    FaultKind.TRUNCATED_JSON: lambda text, *_: Reply(text=text[: max(1, len(text) // 2)]),
    FaultKind.WRONG_JSON: lambda text, *_: Reply(text='{"unexpected": {"shape": true}}'),
    FaultKind.WRONG_TYPE: _wrong_type,
    FaultKind.BAD_ITEM: _bad_item,
    FaultKind.MALFORMED_JSON: _malformed,
    FaultKind.LENGTH: _length,
    FaultKind.REFUSAL: lambda text, *_: Reply(text=None, refusal="I cannot help with that."),
    FaultKind.TOOL_CALL: lambda text, *_: Reply(text=None, finish_reason="tool_calls", tool_call=True),
}
