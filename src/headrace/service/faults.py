"""What the shape of a request breaks, in the words of all other errors: field, rule, value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headrace.model.errors import InvalidInputError

#: Where a value stood; what follows is the way to it.
_PLACES = {"body": "the body", "query": "the query", "path": "the path", "header": "the headers"}
#: Parts of a way that name a kind of value rather than a member.
_KINDS = frozenset({"int", "float", "str", "bool", "constrained-int", "constrained-str"})
#: The rule that a name breaks which means nothing.
UNKNOWN = "is not known here: leave it out, or correct its name"
#: Rules by the kinds of errors; braces stand for the bound that was broken.
_RULES = {
    "missing": "must be given",
    "extra_forbidden": UNKNOWN,
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be above {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be below {lt}",
    "string_too_short": "must be at least {min_length} characters",
    "string_too_long": "must be at most {max_length} characters",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "string_pattern_mismatch": "must match {pattern}",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
}
#: The same of errors whose kinds begin so.
_WHOLE, _NUMBER, _OBJECT = "must be a whole number", "must be a number", "must be an object"
_TYPES = (
    ("int_", _WHOLE), ("float_", _NUMBER), ("finite_number", _NUMBER), ("string_", "must be a text"),
    ("bool_", "must be true or false"), ("list_", "must be a list"), ("dict_", _OBJECT), ("model_", _OBJECT),
    ("uuid_", "must be an id such as 01980000-0000-7000-8000-000000000000"),
)  # fmt: skip


def faults_of(errors: Iterable[Mapping[str, Any]]) -> list[InvalidInputError]:
    """Return the faults of a request, one per field: of a field that may be this or that, what each would be.

    >>> error = {"type": "less_than_equal", "loc": ("body", "priority"), "ctx": {"le": 9}, "input": 11}
    >>> [str(fault) for fault in faults_of([error])]
    ['priority must be at most 9, got 11']
    """
    rules: dict[str, list[str]] = {}
    values: dict[str, Any] = {}
    for error in errors:
        field = _field(error["loc"])
        found, rule = rules.setdefault(field, []), _rule(error)
        if rule not in found:
            found.append(rule)
        values.setdefault(field, None if error["type"] == "missing" else error.get("input"))
    return [InvalidInputError(field, _either(found), values[field]) for field, found in rules.items()]


def _field(place: tuple[int | str, ...]) -> str:
    """Return the name of a field.

    >>> _field(("body", "document_ids", 0)), _field(("body",)), _field(("query", "limit"))
    ('document_ids.0', 'the body', 'limit')
    """
    way = [str(part) for part in place[1:] if part not in _KINDS and not str(part).startswith("literal[")]
    return ".".join(way) or _PLACES.get(str(place[0]), "the request")


def _rule(error: Mapping[str, Any]) -> str:
    kind = str(error["type"])
    text = _RULES.get(kind) or next((rule for start, rule in _TYPES if kind.startswith(start)), "")
    for name, bound in (error.get("ctx") or {}).items():
        text = text.replace(f"{{{name}}}", str(bound))
    return text or "must be as the OpenAPI document of the service says"


def _either(rules: list[str]) -> str:
    """Return one rule of several.

    >>> _either(["must be a number", "must be a text"])
    'must be a number or a text'
    """
    first, *others = rules
    return " or ".join([first, *(rule.removeprefix("must be ") for rule in others)])
