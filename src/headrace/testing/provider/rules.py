"""Answers by rules from a JSON file: whole answers for some prompts, single fields taken from the prompt by a pattern.

    {"rules": [
        {"contains": "Paper 7", "answer": {"country": "Norway"}},
        {"path": "sample_size.value", "pattern": "enrolled (\\d+)", "as": "integer"},
        {"path": "sample_size.sentences", "pattern": "\\[(\\d+)\\][^\\[]*enrolled", "as": "integer", "all": true},
        {"matches": "add", "compute": "sum"},
        {"contains": "names", "list": {"count": "(\\d+) names"}}
    ]}

A rule with `answer`, `list` (see `lists`) or `compute` (see `computing`) gives the whole answer; the first whose
conditions hold decides. Rules with `path` overwrite fields of the default answer. Conditions: `contains` (words),
`matches` (regular expression), both looked up in the messages of the user and the system. In a path, `*` stands for any
key or index.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.model.errors import InvalidInputError
from headrace.testing.provider.chat import ChatRequest
from headrace.testing.provider.computing import COMPUTATIONS
from headrace.testing.provider.filler import fill_schema, schema_in
from headrace.testing.provider.lists import ListRule

_MISSING = object()
_TYPES: Mapping[str, Callable[[str], Any]] = {
    "string": str,
    "integer": lambda text: int(float(text)),
    "number": float,
    "json": json.loads,
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the file."""

    contains: str
    matches: re.Pattern[str] | None
    answer: Any
    path: tuple[str, ...]
    pattern: re.Pattern[str] | None
    group: int
    kind: str
    is_list: bool
    value: Any
    otherwise: Any
    compute: str | None
    listing: ListRule | None

    @classmethod
    def read(cls, data: dict[str, Any]) -> Rule:
        """The rule in this JSON object. Raises InvalidInputError that names the field."""
        _check(data)
        return cls(
            contains=data.get("contains", ""),
            matches=_compile(data.get("matches")),
            answer=data.get("answer", _MISSING),
            path=tuple(data.get("path", "").split(".")),
            pattern=_compile(data.get("pattern")),
            group=data.get("group", 1),
            kind=data.get("as", "string"),
            is_list=data.get("all", False),
            value=data.get("value"),
            otherwise=data.get("otherwise", _MISSING),
            compute=data.get("compute"),
            listing=ListRule.read(data["list"]) if "list" in data else None,
        )

    @property
    def is_whole(self) -> bool:
        """Whether it gives a whole answer, not one field."""
        return self.answer is not _MISSING or self.listing is not None or self.path == ("",)

    def whole(self, request: ChatRequest, schema: Mapping[str, Any] | None, text: str) -> Any:
        """The whole answer it gives; `_MISSING` where it has none for this prompt."""
        if self.answer is not _MISSING:
            return self.answer
        return self.field_value(request.last) if self.listing is None else self.listing.answer(request, schema, text)

    def applies(self, text: str) -> bool:
        """Whether its conditions hold for this prompt."""
        return self.contains in text and (self.matches is None or self.matches.search(text) is not None)

    def field_value(self, text: str) -> Any:
        """What it gives its field for this prompt; `_MISSING` leaves the field alone."""
        if self.compute is not None:
            return self._computed(COMPUTATIONS[self.compute], text)
        if self.pattern is None:
            return self.value
        found = [_TYPES[self.kind](match.group(self.group)) for match in self.pattern.finditer(text)]
        if not found:
            return self.otherwise
        return found if self.is_list else found[0]

    def _computed(self, function: Callable[[str], Any], text: str) -> Any:
        if self.pattern is None:
            return function(text)
        found = [match.group(self.group) for match in self.pattern.finditer(text)]
        return function("\n".join(found)) if found else self.otherwise


_WHOLE = {"answer", "compute", "list"}
_KNOWN = _WHOLE | {"contains", "matches", "path", "pattern", "group", "as", "all", "value", "otherwise"}


def _check(data: dict[str, Any]) -> None:
    if unknown := set(data) - _KNOWN:
        raise InvalidInputError("rule", f"takes only {', '.join(sorted(_KNOWN))}", sorted(unknown))
    if not {"answer", "path", "compute", "list"} & set(data):
        raise InvalidInputError(
            "rule", "needs 'answer', 'compute' or 'list' (a whole answer) or 'path' (a field)", data
        )
    if data.get("as", "string") not in _TYPES:
        raise InvalidInputError("rule as", f"must be one of {', '.join(_TYPES)}", data["as"])
    if data.get("compute", "echo") not in COMPUTATIONS:
        raise InvalidInputError("rule compute", f"must be one of {', '.join(COMPUTATIONS)}", data["compute"])


def _compile(pattern: str | None) -> re.Pattern[str] | None:
    try:
        return None if pattern is None else re.compile(pattern)
    except re.error as error:
        raise InvalidInputError("rule pattern", f"is no regular expression ({error})", pattern) from None


class Answers:
    """The scripted model's mind: rules first, then the schema filled from the prompt, then a fixed phrase."""

    def __init__(self, rules: Sequence[dict[str, Any]] = ()) -> None:
        self._rules = [Rule.read(rule) for rule in rules]

    @classmethod
    def load(cls, path: Path) -> Answers:
        """Read a file of rules. Raises InvalidInputError."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InvalidInputError("answers", f"must be a readable JSON file ({error})", str(path)) from None
        rules = data.get("rules") if isinstance(data, dict) else None
        if not isinstance(rules, list):
            raise InvalidInputError("answers", "must hold an object with a list 'rules'", str(path))
        return cls(rules)

    def __call__(self, request: ChatRequest) -> str:
        """The answer to this request."""
        rules = [rule for rule in self._rules if rule.applies(request.text)]
        schema, text = _schema_and_text(request)
        for rule in rules:
            answer = rule.whole(request, schema, text) if rule.is_whole else _MISSING
            if answer is not _MISSING:
                return answer if isinstance(answer, str) else json.dumps(answer)
        if schema is None:
            return _plain_answer(rules, request)
        filled = fill_schema(schema, text)
        for rule in rules:
            value = rule.field_value(text)
            if value is not _MISSING:
                _overwrite(filled, rule.path, value)
        return json.dumps(filled)


def _schema_and_text(request: ChatRequest) -> tuple[Mapping[str, Any] | None, str]:
    """The schema to fill, wherever it is told, and the text to fill it from."""
    if request.schema is None and request.json_mode:
        in_user_text, in_text = schema_in(request.user_text), schema_in(request.text)
        if in_user_text is not None:
            return in_user_text
        if in_text is not None:
            return in_text[0], request.user_text
    return request.schema, request.user_text


def _plain_answer(rules: Sequence[Rule], request: ChatRequest) -> str:
    for rule in rules:
        value = rule.field_value(request.user_text)
        if value is not _MISSING and rule.path[-1].replace("_", " ") in request.last.lower().replace("_", " "):
            return value if isinstance(value, str) else json.dumps(value)
    return f"scripted answer {request.key[:8]}"


def _overwrite(target: Any, path: Sequence[str], value: Any) -> None:
    head, rest = path[0], path[1:]
    if isinstance(target, dict):
        names: list[Any] = [name for name in target if head in ("*", name)]
    elif isinstance(target, list):
        names = [index for index in range(len(target)) if head in ("*", str(index))]
    else:
        return
    for name in names:
        if rest:
            _overwrite(target[name], rest, value)
        else:
            target[name] = value
