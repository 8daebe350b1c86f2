"""What set puts into a field: values as the types that are asked for, and JSON with expressions in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from headrace.model.errors import InvalidInputError
from headrace.model.expressions.errors import ExpressionSyntaxError
from headrace.model.expressions.evaluation import check, evaluate
from headrace.model.expressions.values import truthy
from headrace.nodes.conversions import number_of, parsed, text_of, truth_of
from headrace.nodes.parameters import Parameters

KINDS = ("string", "number", "boolean", "array", "object")
_CLOSING = re.compile(r"\}(?=\})")
#: How many }} one expression may have within it.
_MAX_BRACES = 20
_LOOSE = "change the type, or set options.ignoreConversionErrors to keep the value as it is"


def typed(value: Any, kind: str, version: float, *, loose: bool, field: str) -> Any:
    """Return a value as a type; `loose`: as it is where it cannot become one. Raises InvalidInputError.

    >>> typed("7", "number", 3.4, loose=False, field="value"), typed([1], "string", 3.4, loose=False, field="value")
    (7, '[1]')
    """
    if value is None:
        return _nothing(kind, version, loose, field)
    made = _converted(value, kind)
    if made is not None:
        return made
    if not loose:
        raise InvalidInputError(field, f"must be {_article(kind)}: {_LOOSE}", value)
    return value


def _nothing(kind: str, version: float, loose: bool, field: str) -> Any:
    """Return what null becomes: itself, but in versions 3 and 3.1 no text."""
    if kind == "string" and version < 3.1:
        return "null"
    if kind == "string" and version < 3.2 and not loose:
        raise InvalidInputError(field, f"must be a text: {_LOOSE}", None)
    return None


def _converted(value: Any, kind: str) -> Any:
    if kind == "string":
        return text_of(value)
    if kind == "number":
        return number_of(value)
    if kind == "boolean":
        return truth_of(value)
    wanted = list if kind == "array" else dict
    return parsed(value, wanted) if isinstance(value, str) else value if isinstance(value, wanted) else None


def _article(kind: str) -> str:
    return f"an {kind}" if kind in ("array", "object") else f"a {kind}"


def first_value(value: Any, kind: str, version: float) -> Any:
    """Return a value as versions 1 and 2 set it: truth values alone are made, and numbers of texts in version 2.

    >>> first_value("5", "number", 1), first_value("5", "number", 2), first_value("no", "boolean", 1)
    ('5', 5, True)
    """
    if kind == "boolean":
        return truthy(value)
    if kind == "number" and version >= 2 and isinstance(value, str):
        found = number_of(value)
        return value if found is None else found
    return value


def filled(at: Parameters, path: str) -> Any:
    """Return a text of JSON with its expressions in place: what they give is written as JSON, texts as they are.

    One expression alone gives what it gives.
    """
    text = at.raw[path]
    if not isinstance(text, str) or not text.startswith("=") or at.scope is None:
        return at.get(path)
    field, template = f"{at.field}.{path}", text.lstrip("=").strip()
    pieces = list(_pieces(template, field))
    values = [evaluate(f"={piece}", at.scope, field=field) if inside else piece for piece, inside in pieces]
    return values[0] if len(pieces) == 1 else "".join(map(text_of, values))


def _pieces(template: str, field: str) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of a template in order, each with whether it is an expression, braces and all."""
    at = 0
    while (start := template.find("{{", at)) >= 0:
        if start > at:
            yield template[at:start], False
        at = _end(template, start, field)
        yield template[start:at], True
    if at < len(template):
        yield template[at:], False


def _end(template: str, start: int, field: str) -> int:
    """Return where the expression ends that begins at an offset: braces may be within it, in a text or an object."""
    errors: list[ExpressionSyntaxError] = []
    closing = islice(_CLOSING.finditer(template, start), _MAX_BRACES)
    for end in [found.start() + 2 for found in closing] or [len(template)]:
        try:
            check(f"={template[start:end]}", field=field)
        except ExpressionSyntaxError as error:
            errors.append(error)
        else:
            return end
    raise errors[0]


def json_object(at: Parameters, path: str) -> dict[str, Any]:
    """Return the object that a parameter is, or is the JSON of. Raises InvalidInputError."""
    value = filled(at, path) if path in at.raw else None
    found = parsed(value, dict) if isinstance(value, str) else value
    if isinstance(found, dict):
        return found
    rule = "must be the JSON of an object: write {{ JSON.stringify($json.name) }} for a text with quotes or lines in it"
    raise InvalidInputError(f"{at.field}.{path}", rule, value)
