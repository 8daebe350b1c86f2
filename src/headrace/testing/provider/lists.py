"""The rule `list`: an answer that is a list of made-up elements, or one for each element of a list in the prompt.

    {"contains": "names", "list": {"count": "(\\d+) names", "item": {"id": "{index}", "name": "{name}"}}}
    {"contains": "Tag these", "list": {"each": "cases", "item": {"id": "{given.id}", "module": "{words:1}"}}}

The same seed and prompt give the same elements, and the element of a number is the same however many are asked for. A
JSON object in the prompt may ask for a part: `{"continue_after": 20}`, `{"only_items": [2, 5]}`, `{"count": 10}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from headrace.model.errors import InvalidInputError
from headrace.testing.provider.chat import ChatRequest
from headrace.testing.provider.filler import fill_schema
from headrace.testing.provider.inventing import Inventor, Schema, SchemaInventor, resolve

_DEFAULT_COUNT = 10
_WISHES = ("continue_after", "only_items", "count")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRule:
    """What the list is like."""

    #: How many elements, or a pattern whose first group says so in the prompt.
    count: int | str = _DEFAULT_COUNT
    #: Template of an element; by default the schema's elements, or a name where there is no schema.
    item: Any = None
    #: Field that holds the list where no schema tells; None answers with the bare list.
    key: str | None = "items"
    #: One element for each of the list of this name in the prompt's JSON.
    each: str | None = None
    #: What the list is about, a pattern; equal words give equal elements. By default the first message of the user.
    about: str | None = None
    #: Take names from so many that all lists share, so that lists overlap.
    pool: int | None = None
    seed: int = 0

    @classmethod
    def read(cls, data: Any) -> ListRule:
        """The rule in this JSON object. Raises InvalidInputError that names the field."""
        known = [field.name for field in fields(cls)]
        if not isinstance(data, dict) or not set(data) <= set(known):
            raise InvalidInputError("rule list", f"must be an object of {', '.join(known)}", data)
        rule = cls(**data)
        try:
            for pattern in (rule.about, rule.count):
                re.compile(pattern if isinstance(pattern, str) else "")
        except re.error as error:
            raise InvalidInputError("rule list", f"holds a pattern that is none ({error})", data) from None
        return rule

    def answer(self, request: ChatRequest, schema: Schema | None, text: str) -> Any:
        """The answer to this request; `schema` and `text` as `Answers` found them."""
        root = schema or {}
        key, item_schema = (self.key, None) if schema is None else _list_field(schema)
        elements = [self._element(root, item_schema, *wanted) for wanted in self._wanted(request)]
        if key is None:
            return elements
        rest = fill_schema(schema, text) if schema is not None and "properties" in schema else {}
        return {**(rest if isinstance(rest, dict) else {}), key: elements}

    def _element(self, root: Schema, schema: Schema | None, index: int, subject: str, given: Any) -> Any:
        inventor = Inventor(self.seed, subject, index, pool=self.pool, depends_on_place=given is None)
        if self.item is not None:
            return inventor.fill(self.item, given)
        if schema is None:
            return inventor.name() if given is None else given
        made = SchemaInventor(root, inventor).make(schema)
        if isinstance(made, dict) and isinstance(given, Mapping):
            made |= {name: value for name, value in given.items() if name in made}
        return made

    def _wanted(self, request: ChatRequest) -> Iterator[tuple[int, str, Any]]:
        """(number, what its list is about, element asked about) of each element to answer with."""
        wishes = _wishes(request)
        subject = self._subject(request)
        given = _given(request, self.each) if self.each is not None else None
        count = len(given) if given is not None else wishes.get("count", self._count(request))
        for index in _numbers(wishes, count):
            if given is None:
                yield index, subject, None
            elif 1 <= index <= len(given):
                # Each is about itself: asked again alone it has the same answer.
                yield index, f"{self.seed}:{json.dumps(given[index - 1], sort_keys=True)}", given[index - 1]

    def _count(self, request: ChatRequest) -> int:
        if isinstance(self.count, int):
            return self.count
        found = re.search(self.count, request.user_text)
        return int(found.group(1)) if found else _DEFAULT_COUNT

    def _subject(self, request: ChatRequest) -> str:
        if self.about is not None and (found := re.search(self.about, request.text)):
            return found.group(found.re.groups and 1)
        return next((text for role, text in request.messages if role == "user"), request.last)


def _numbers(wishes: Mapping[str, Any], count: int) -> list[int]:
    if isinstance(only := wishes.get("only_items"), list):
        return [number for number in only if isinstance(number, int)]
    after = wishes.get("continue_after", 0)
    return list(range(after + 1, after + count + 1)) if "count" in wishes else list(range(after + 1, count + 1))


def _list_field(schema: Schema) -> tuple[str | None, Schema | None]:
    """Name and element schema of the list in this schema; no name where the whole is the list."""
    definitions = schema.get("$defs", {})
    schema = resolve(schema, definitions)
    if schema.get("type") == "array":
        return None, schema.get("items", {})
    for name, field in schema.get("properties", {}).items():
        resolved = resolve(field, definitions)
        if resolved.get("type") == "array":
            return name, resolved.get("items", {})
    return "items", None


def _wishes(request: ChatRequest) -> Mapping[str, Any]:
    """The last JSON object in the messages that asks for a part of the list."""
    for role, text in reversed(request.messages):
        found = [value for value in _objects(text) if set(value) & set(_WISHES)] if role != "assistant" else []
        if found:
            return found[-1]
    return {}


def _given(request: ChatRequest, key: str) -> list[Any]:
    """The list of this name in the last JSON object of the prompt that has one."""
    for _, text in reversed([message for message in request.messages if message[0] != "assistant"]):
        found = [value[key] for value in _objects(text) if isinstance(value.get(key), list)]
        if found:
            return list(found[-1])
    return []


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects that stand in this text, outermost only."""
    decoder, at = json.JSONDecoder(), text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except ValueError:
            end = at + 1
        else:
            yield value
        at = text.find("{", end)
